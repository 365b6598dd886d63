-- Catalog: has workers deliver what the catalog of app $1 releases of what was bought before.
INSERT INTO ledger.delivery_release (app_id, product_id, after_purchase, after_subscription)
SELECT $1::int, p.product_id, CASE WHEN p.kind <> 'auto_renewable' THEN 0 END, CASE WHEN p.kind = 'auto_renewable' THEN 0 END
FROM ledger.product p
WHERE p.app_id = $1::int AND p.kind IS NOT NULL
ON CONFLICT (app_id, product_id) DO UPDATE
SET after_purchase = EXCLUDED.after_purchase, after_subscription = EXCLUDED.after_subscription
