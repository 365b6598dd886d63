-- Returns the timelines of the subscriptions that customer $2 of app $1 owns, newest span first, at most $3.
SELECT s.original_transaction_id, t.product_id, t.state::text AS state, t.reason::text AS reason, t.entitled, t.flags,
       NULLIF(lower(t.valid), '-infinity') AS since, NULLIF(upper(t.valid), 'infinity') AS until
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
JOIN ledger.ownership o ON o.customer_id = c.customer_id AND upper_inf(o.known) AND upper_inf(o.valid)
JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
JOIN ledger.subscription_span t ON t.subscription_id = s.subscription_id AND upper_inf(t.known)
WHERE a.bundle_id = $1::text AND c.name = $2::text
ORDER BY lower(t.valid) DESC, s.original_transaction_id COLLATE "C" LIMIT $3::int
