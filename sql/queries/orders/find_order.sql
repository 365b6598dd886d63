-- Orders: returns the app of order $1, and its customer as the name means now.
SELECT a.bundle_id, head.name AS customer
FROM ledger.purchase_order o
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.order_id = $1::text::uuid
