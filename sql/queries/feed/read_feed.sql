-- Feed: returns events after position $1 up to position $2 of app $3 (null: every app), in order, at most $4.
SELECT f.position, e.public_id, a.bundle_id, e.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, c.name AS customer,
       e.kind::text AS kind, e.product_id, e.occurred_at, e.recorded_at, e.version, e.ordinal, e.detail
FROM ledger.event_feed f
JOIN ledger.event e USING (event_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE f.position > $1::bigint AND f.position <= $2::bigint AND ($3::text IS NULL OR a.bundle_id = $3::text)
ORDER BY f.position LIMIT $4::int
