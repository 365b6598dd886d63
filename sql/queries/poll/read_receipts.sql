-- Locks receipts ($1), by receipt id, and returns their stored data; no erasure removes them before the end of the
-- transaction. Settlements and all other changes of what receipts poll run it after lock_schedules.sql. sender: 2: Apple vouched
-- for what a customer sent; 1: a customer only points at the contents; 0: no customer sent it.
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.observed_at, r.settled_token, r.erased_at IS NOT NULL AS erased, r.receipt_created_at, r.received_at,
       r.outcome IS NOT DISTINCT FROM 'rejected' AS refused, o.first_as_of AS observed_from,
       CASE WHEN r.vouched OR r.form = 'signed_transaction' THEN 2
            WHEN EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
              OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id) THEN 1
            ELSE 0 END::smallint AS sender
FROM ledger.receipt r
LEFT JOIN ledger.observation o ON o.observation_id = r.observation_id AND o.recorded_at = r.observed_at
WHERE r.receipt_id = ANY($1::bigint[])
ORDER BY r.receipt_id
FOR NO KEY UPDATE OF r
