-- Customer: counts what customers ($1) own, and the receipts that they uploaded or that were sent for their orders;
-- repeated once everything is locked.
SELECT (SELECT count(*) FROM ledger.ownership o
        WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)) AS things,
       (SELECT count(*) FROM (
            SELECT u.receipt_id FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])
            UNION
            SELECT x.receipt_id FROM ledger.purchase_order o JOIN ledger.order_receipt x USING (order_id)
            WHERE o.customer_id = ANY($1::bigint[])) n) AS receipts
