-- Feed: returns its present id and its newest position.
SELECT f.feed_id, f.position FROM ledger.feed_here f
