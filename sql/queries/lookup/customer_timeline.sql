-- Returns the present timelines of the subscriptions that customer $2 of app $1 owns, span by span: the newest $3, in
-- order.
SELECT t.* FROM (
    SELECT s.environment::text AS environment, s.original_transaction_id, lower(p.valid) AS valid_from,
           upper(p.valid) AS valid_until, p.state::text AS state, p.reason::text AS reason, p.entitled, p.product_id,
           p.allowed_until
    FROM ledger.app a
    JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
    JOIN ledger.ownership o ON o.customer_id = c.customer_id AND upper_inf(o.known) AND o.valid @> now()
    JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
    JOIN ledger.subscription_span p ON p.subscription_id = s.subscription_id AND upper_inf(p.known)
    WHERE a.bundle_id = $1::text
    ORDER BY lower(p.valid) DESC NULLS LAST LIMIT $3::int) t
ORDER BY t.environment, t.original_transaction_id COLLATE "C", t.valid_from NULLS FIRST
