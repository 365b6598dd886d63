-- Erase: gives customers ($1) a random name at $2, and removes the reasons of their manual grants and of other
-- decisions about them, with the Idempotency-Keys of those grants.
WITH requests AS (
    DELETE FROM ledger.grant_request r USING ledger.manual_grant h
    WHERE h.manual_grant_id = r.manual_grant_id AND h.customer_id = ANY($1::bigint[])
), grants AS (
    UPDATE ledger.manual_grant h
    SET reason = 'erased', end_reason = CASE WHEN h.end_reason IS NOT NULL THEN 'erased' END
    WHERE h.customer_id = ANY($1::bigint[])
), moved AS (
    -- A merge copied these grants to another customer, in the same words, and they stayed when it was undone.
    UPDATE ledger.manual_grant h SET reason = 'erased'
    FROM ledger.customer_merge m JOIN ledger.manual_grant f USING (customer_id)
    WHERE m.customer_id = ANY($1::bigint[]) AND h.customer_id = m.into_id AND NOT h.customer_id = ANY($1::bigint[])
      AND (h.entitlement, h.given_by, h.reason) = (f.entitlement, f.given_by, f.reason)
), decisions AS (
    UPDATE ledger.audit a SET detail = jsonb_set(a.detail, '{reason}', '"erased"', false)
    WHERE a.decided_about && $1::bigint[]
)
UPDATE ledger.customer c
SET name = 'erased-' || replace(gen_random_uuid()::text, '-', ''), erased_at = $2::timestamptz
WHERE c.customer_id = ANY($1::bigint[])
RETURNING c.name, c.merged_into IS NULL AS is_head
