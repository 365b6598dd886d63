-- Returns subscriptions whose outage allowance has run out, at most $1.
SELECT DISTINCT p.subscription_id
FROM (
    SELECT o.subscription_id FROM ledger.subscription_span o
    WHERE upper_inf(o.known) AND o.allowed_until <= now()
    ORDER BY o.allowed_until LIMIT $1::int) p
