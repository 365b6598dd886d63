-- Locks receipts ($1), by receipt id, and returns their stored data; no erasure removes them before the end of the
-- transaction. Settlements and all other changes of what receipts poll run it after lock_schedules.sql.
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.observed_at, r.settled_token, r.erased_at IS NOT NULL AS erased, r.receipt_created_at, r.received_at,
       r.outcome IS NOT DISTINCT FROM 'rejected' AS refused, o.first_as_of AS observed_from
FROM ledger.receipt r
LEFT JOIN ledger.observation o ON o.observation_id = r.observation_id AND o.recorded_at = r.observed_at
WHERE r.receipt_id = ANY($1::bigint[])
ORDER BY r.receipt_id
FOR NO KEY UPDATE OF r
