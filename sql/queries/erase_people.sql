-- Erase: customers ($1) get a random name at $2, and nobody can read any more why they were given rights by hand.
WITH grants AS (
    UPDATE ledger.hand_grant h
    SET reason = 'erased', end_reason = CASE WHEN h.end_reason IS NOT NULL THEN 'erased' END
    WHERE h.customer_id = ANY($1::bigint[])
)
UPDATE ledger.customer c
SET name = 'erased-' || replace(gen_random_uuid()::text, '-', ''), erased_at = $2::timestamptz
WHERE c.customer_id = ANY($1::bigint[])
RETURNING c.name, c.merged_into IS NULL AS is_head
