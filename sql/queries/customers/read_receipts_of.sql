-- Erase: returns the receipts of customers ($1), uploaded, sent for their orders, or made by notifications about what they own, and
-- whether they are of no other customer.
SELECT n.receipt_id,
       NOT EXISTS (SELECT FROM ledger.upload o
                   WHERE o.receipt_id = n.receipt_id AND o.customer_id <> ALL($1::bigint[]))
       AND NOT EXISTS (SELECT FROM ledger.order_receipt x JOIN ledger.purchase_order o USING (order_id)
                       WHERE x.receipt_id = n.receipt_id AND o.customer_id <> ALL($1::bigint[])) AS sole
FROM (
    SELECT u.receipt_id FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])
    UNION
    SELECT x.receipt_id FROM ledger.purchase_order o JOIN ledger.order_receipt x USING (order_id)
    WHERE o.customer_id = ANY($1::bigint[])
    UNION
    -- A notification made it, and it holds nothing of another customer.
    SELECT r.receipt_id
    FROM ledger.ownership o
    CROSS JOIN LATERAL (
        SELECT l.receipt_id FROM ledger.receipt_subscription l WHERE l.subscription_id = o.subscription_id
        UNION ALL
        SELECT l.receipt_id FROM ledger.receipt_purchase l WHERE l.purchase_id = o.purchase_id) l
    JOIN ledger.receipt r ON r.receipt_id = l.receipt_id AND r.form = 'transaction_id' AND r.erased_at IS NULL
    WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
      AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
      AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
      AND NOT EXISTS (
          SELECT FROM ledger.receipt_subscription t JOIN ledger.ownership w USING (subscription_id)
          WHERE t.receipt_id = r.receipt_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.customer_id <> ALL($1::bigint[]))
      AND NOT EXISTS (
          SELECT FROM ledger.receipt_purchase t JOIN ledger.ownership w USING (purchase_id)
          WHERE t.receipt_id = r.receipt_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.customer_id <> ALL($1::bigint[]))) n
ORDER BY n.receipt_id
