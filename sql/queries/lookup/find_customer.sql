-- Explain: returns app $1, the customer that the name $2 meant at the instant $3 (null when unknown), that instant
-- ($3 null: now), and now.
SELECT a.app_id, ledger.customer_at(c.customer_id, LEAST(COALESCE($3::timestamptz, now()), now())) AS customer_id,
       COALESCE($3::timestamptz, now()) AS at, now() AS now
FROM ledger.app a
LEFT JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
WHERE a.bundle_id = $1::text
