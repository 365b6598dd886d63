-- Settlement: records the first refusal of receipts while an incident may still result from it ($1 receipts, $2 apps,
-- $3 when, $4 verified before, $5 whether it counts, $6 rejections before it, $7 reasons, $8 canaries).
INSERT INTO ledger.refusal (receipt_id, app_id, refused_at, once_verified, counts, rejections_before, reason, is_canary)
SELECT n.receipt_id, n.app_id, $3::timestamptz, n.once_verified, n.counts, n.rejections_before, n.reason, n.is_canary
FROM unnest($1::bigint[], $2::int[], $4::boolean[], $5::boolean[], $6::smallint[], $7::text[], $8::boolean[])
    AS n(receipt_id, app_id, once_verified, counts, rejections_before, reason, is_canary)
ORDER BY n.receipt_id
ON CONFLICT DO NOTHING
