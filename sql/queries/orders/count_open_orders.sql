-- Orders: counts the open orders of customer $2 of app $1, whose name may mean another customer.
SELECT count(*) AS orders
FROM ledger.app a
JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
JOIN ledger.purchase_order o ON o.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE a.bundle_id = $1::text AND o.state IN ('created', 'purchasing', 'deferred')
