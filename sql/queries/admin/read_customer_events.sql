-- Returns the events of everything that customer $2 of app $1 owns, newest first, at most $3.
SELECT e.kind::text AS kind, COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       e.product_id, e.occurred_at, e.recorded_at
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
JOIN ledger.ownership o ON o.customer_id = c.customer_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
LEFT JOIN ledger.purchase p ON p.purchase_id = o.purchase_id
CROSS JOIN LATERAL (
    SELECT * FROM ledger.event x WHERE x.subscription_id = o.subscription_id
    UNION ALL
    SELECT * FROM ledger.event x WHERE x.purchase_id = o.purchase_id) e
WHERE a.bundle_id = $1::text AND c.name = $2::text
ORDER BY e.recorded_at DESC, e.event_id DESC LIMIT $3::int
