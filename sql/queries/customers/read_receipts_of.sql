-- Erase: returns the receipts of customers ($1), uploaded or sent for their orders, and whether they are of no other
-- customer.
SELECT n.receipt_id,
       NOT EXISTS (SELECT FROM ledger.upload o
                   WHERE o.receipt_id = n.receipt_id AND o.customer_id <> ALL($1::bigint[]))
       AND NOT EXISTS (SELECT FROM ledger.order_receipt x JOIN ledger.purchase_order o USING (order_id)
                       WHERE x.receipt_id = n.receipt_id AND o.customer_id <> ALL($1::bigint[])) AS sole
FROM (
    SELECT u.receipt_id FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])
    UNION
    SELECT x.receipt_id FROM ledger.purchase_order o JOIN ledger.order_receipt x USING (order_id)
    WHERE o.customer_id = ANY($1::bigint[])) n
ORDER BY n.receipt_id
