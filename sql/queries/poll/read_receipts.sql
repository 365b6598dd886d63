-- Settlement, step 1, after the schedules: reads the stored data of receipts ($1), locked by receipt id, so that no
-- erasure removes them before the end of the transaction.
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.observed_at, r.settled_token, r.erased_at IS NOT NULL AS erased, r.receipt_created_at,
       r.outcome IS NOT DISTINCT FROM 'rejected' AS refused, o.first_as_of AS observed_from
FROM ledger.receipt r
LEFT JOIN ledger.observation o ON o.observation_id = r.observation_id AND o.recorded_at = r.observed_at
WHERE r.receipt_id = ANY($1::bigint[])
ORDER BY r.receipt_id
FOR NO KEY UPDATE OF r
