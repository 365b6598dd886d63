-- Orders: stores that receipts ($1) were sent for orders ($2), with a proof or by name ($3), for the payment that a caller
-- named ($5); $4 says which are new. Orders of erased customers get none. Returns the orders.
INSERT INTO ledger.order_receipt AS u (receipt_id, order_id, is_proved, is_new, sent_at, transaction_id, is_naming)
SELECT n.receipt_id, o.order_id, n.is_proved, n.is_new, clock_timestamp(), n.transaction_id, n.transaction_id IS NOT NULL
FROM (
    SELECT n.receipt_id, n.order_id::uuid AS order_id, bool_or(n.is_proved) AS is_proved, bool_or(n.is_new) AS is_new,
           max(n.transaction_id COLLATE "C") AS transaction_id
    FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::boolean[], $5::text[])
        AS n(receipt_id, order_id, is_proved, is_new, transaction_id)
    GROUP BY n.receipt_id, n.order_id) n
JOIN ledger.purchase_order o ON o.order_id = n.order_id AND o.sealed_key IS NOT NULL
ORDER BY n.receipt_id, o.order_id
FOR KEY SHARE OF o
ON CONFLICT (receipt_id, order_id) DO UPDATE
SET is_proved = u.is_proved OR EXCLUDED.is_proved, sent_at = EXCLUDED.sent_at, settled = false,
    transaction_id = COALESCE(EXCLUDED.transaction_id, u.transaction_id), is_naming = EXCLUDED.is_naming
RETURNING u.order_id::text AS order_id
