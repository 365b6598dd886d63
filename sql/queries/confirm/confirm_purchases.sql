-- Confirmation: moves the clocks of one-time purchases; at $1; $2 purchases, $3 Apple's clocks, $4 whether the
-- confirmed receipt polls them, $5 their next checks in that case: null when no further change is expected.
UPDATE ledger.purchase p
SET as_of = n.as_of, checked_at = $1::timestamptz,
    next_check_at = CASE WHEN n.is_polled THEN n.next_check_at ELSE p.next_check_at END
FROM unnest($2::bigint[], $3::timestamptz[], $4::boolean[], $5::timestamptz[])
    AS n(purchase_id, as_of, is_polled, next_check_at)
WHERE p.purchase_id = n.purchase_id
