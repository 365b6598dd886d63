-- How the whole stands: receipts by verification, subscriptions, events, and when the newest verified answer came.
SELECT (SELECT count(*) FROM ledger.receipt) AS receipts,
       (SELECT count(*) FROM ledger.receipt WHERE verified_at IS NOT NULL) AS verified,
       (SELECT count(*) FROM ledger.receipt WHERE verified_at IS NULL) AS unverified,
       (SELECT count(*) FROM ledger.receipt WHERE outcome = 'rejected') AS rejected,
       (SELECT count(*) FROM ledger.subscription WHERE version > 0) AS subscriptions,
       (SELECT count(*) FROM ledger.event_outbox) AS unsequenced,
       (SELECT COALESCE(max(position), 0) FROM ledger.event_feed) AS position,
       (SELECT feed_id::text FROM ledger.feed) AS feed_id,
       (SELECT count(*) FROM ledger.worker WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes') AS workers,
       (SELECT max(checked_at) FROM ledger.subscription) AS last_checked_at
