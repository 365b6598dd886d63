-- Orders: stores that receipts ($1) were sent for orders ($2), with a proof or by name ($3); $4 says which are new.
INSERT INTO ledger.order_receipt AS u (receipt_id, order_id, is_proved, is_new, sent_at)
SELECT n.receipt_id, n.order_id::uuid, bool_or(n.is_proved), bool_or(n.is_new), clock_timestamp()
FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::boolean[]) AS n(receipt_id, order_id, is_proved, is_new)
GROUP BY n.receipt_id, n.order_id
ORDER BY n.receipt_id, n.order_id
ON CONFLICT (receipt_id, order_id) DO UPDATE
SET is_proved = u.is_proved OR EXCLUDED.is_proved, sent_at = EXCLUDED.sent_at, settled = false
