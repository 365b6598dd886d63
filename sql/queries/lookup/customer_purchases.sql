-- Returns the one-time purchases that customer $2 of app $1 owns now, at most $3.
SELECT v.environment, v.transaction_id, v.original_transaction_id, v.product_id, v.quantity, v.purchased_at, v.revoked_at
FROM perennial.purchase_now v
WHERE v.bundle_id = $1::text AND v.customer = $2::text
ORDER BY v.environment, v.purchased_at, v.transaction_id COLLATE "C", v.product_id COLLATE "C" LIMIT $3::int
