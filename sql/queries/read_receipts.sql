-- Settlement: what is remembered of the batch's receipts ($1).
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.observed_at, r.settled_token
FROM ledger.receipt r
WHERE r.receipt_id = ANY($1::bigint[])
