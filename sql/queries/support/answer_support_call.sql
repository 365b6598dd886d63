-- Stores what came of support call $1: outcome $2, why $3, Apple's code $4, until when a subscription was extended $5.
UPDATE ledger.support_call c
SET outcome = $2::text, reason = $3::text, code = $4::int, extended_until = $5::timestamptz,
    answered_at = clock_timestamp()
WHERE c.request_id = $1::text::uuid
RETURNING request_id::text AS request_id, outcome, reason, code, extended_until, attempts, answered_at
