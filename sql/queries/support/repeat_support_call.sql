-- Notes that support call $1 is sent again, with $2.
UPDATE ledger.support_call c
SET request = $2::jsonb, outcome = 'sent', reason = NULL, code = NULL, asked_at = clock_timestamp(), answered_at = NULL,
    attempts = c.attempts + 1
WHERE c.request_id = $1::text::uuid
RETURNING request_id::text AS request_id, outcome, reason, code, extended_until, attempts, answered_at
