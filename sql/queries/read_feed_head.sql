-- Feed: its id and its newest position.
SELECT f.feed_id, COALESCE((SELECT max(position) FROM ledger.event_feed), 0) AS position FROM ledger.feed f
