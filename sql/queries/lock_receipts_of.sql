-- Customer: locks the schedules of the receipts of customers ($1) by receipt id; step 1. leased: an answer is under way.
SELECT s.receipt_id, s.leased_by IS NOT NULL AND s.due_at > clock_timestamp() AS leased
FROM ledger.poll_schedule s
WHERE s.receipt_id IN (SELECT u.receipt_id FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[]))
ORDER BY s.receipt_id
FOR NO KEY UPDATE
