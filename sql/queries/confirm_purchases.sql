-- Confirmation, step 6: moves the clocks of one-time purchases; at $1; $2 purchases, $3 Apple's clocks.
UPDATE ledger.purchase p
SET as_of = n.as_of, checked_at = $1::timestamptz
FROM unnest($2::bigint[], $3::timestamptz[]) AS n(purchase_id, as_of)
WHERE p.purchase_id = n.purchase_id
