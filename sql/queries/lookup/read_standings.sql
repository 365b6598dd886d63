-- Returns the status of customer $1's receipts at Apple, oldest first, at most $2, for explanations and exports of a
-- customer.
SELECT r.receipt_id, r.received_at, GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, r.outcome::text AS outcome, r.reason, r.rejections,
       r.rejected_since, s.due_at
FROM ledger.receipt r
JOIN ledger.upload u USING (receipt_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE u.customer_id = $1::bigint
ORDER BY r.receipt_id LIMIT $2::int
