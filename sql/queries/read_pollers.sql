-- Settlement: when polling receipts ($1) were made, null for one that was refused since: any other one is better.
-- Read after the locks, for another settlement may just have learnt it.
SELECT r.receipt_id, CASE WHEN r.rejections = 0 THEN r.receipt_created_at END AS created_at
FROM ledger.receipt r WHERE r.receipt_id = ANY($1::bigint[])
