-- Settlement: what is remembered of the batch's receipts ($1).
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.receipt_created_at, r.outcome::text AS outcome, o.recorded_at AS observation_recorded_at
FROM ledger.receipt r
LEFT JOIN ledger.observation o ON o.receipt_id = r.receipt_id AND o.observation_id = r.observation_id
WHERE r.receipt_id = ANY($1::bigint[])
