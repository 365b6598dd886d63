-- Erase: returns the receipts of customers ($1), and whether no other customer uploaded them.
SELECT u.receipt_id,
       NOT EXISTS (SELECT FROM ledger.upload o
                   WHERE o.receipt_id = u.receipt_id AND o.customer_id <> ALL($1::bigint[])) AS sole
FROM ledger.upload u
WHERE u.customer_id = ANY($1::bigint[])
GROUP BY u.receipt_id ORDER BY u.receipt_id
