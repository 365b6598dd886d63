-- Orders: returns for which orders receipts ($1) were sent, with the customer as the name means now.
SELECT x.receipt_id, x.order_id::text AS order_id, x.is_proved, x.transaction_id, head.customer_id, head.name,
       o.state NOT IN ('delivered', 'refunded') AS is_payable
FROM ledger.order_receipt x
JOIN ledger.purchase_order o USING (order_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE x.receipt_id = ANY($1::bigint[])
ORDER BY o.created_at, o.order_id
