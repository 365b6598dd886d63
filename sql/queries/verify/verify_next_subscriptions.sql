-- Verify: returns the end of the next slice of at most $2 subscriptions after $1; null when there are none.
SELECT max(n.subscription_id) AS until
FROM (SELECT subscription_id FROM ledger.subscription WHERE subscription_id > $1::bigint ORDER BY subscription_id LIMIT $2::int) n
