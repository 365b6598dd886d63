-- Confirmation, step 6: moves the clocks of one-time purchases; at $1; $2 purchases, $3 Apple's clocks, $4 the next checks of
-- those that the confirmed receipt polls, null for the others.
UPDATE ledger.purchase p
SET as_of = n.as_of, checked_at = $1::timestamptz, next_check_at = COALESCE(n.next_check_at, p.next_check_at)
FROM unnest($2::bigint[], $3::timestamptz[], $4::timestamptz[]) AS n(purchase_id, as_of, next_check_at)
WHERE p.purchase_id = n.purchase_id
