-- Settlement, step 1, after the schedules: what is remembered of the batch's receipts ($1), locked by
-- receipt id, so that nobody erases them until the end.
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.observed_at, r.settled_token, r.erased_at IS NOT NULL AS erased
FROM ledger.receipt r
WHERE r.receipt_id = ANY($1::bigint[])
ORDER BY r.receipt_id
FOR NO KEY UPDATE
