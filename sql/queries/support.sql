-- Support calls to Apple.

-- name: find_mass_extension
-- Returns the identifier of the newest extension of all subscriptions of product $3 that was sent for app $1 in environment $2.
SELECT c.request_id::text AS request_id
FROM ledger.support_call c
WHERE c.app_id = $1::int AND c.environment = $2::text::ledger.environment AND c.kind = 'extend_all'
  AND c.subject = $3::text
ORDER BY c.first_asked_at DESC LIMIT 1

-- name: hasten_check
-- Makes the check of the receipt due that polls the subscription or purchase $3 of app $1 and environment $2. Where a check is
-- under way, another one follows. Returns how many receipts poll it.
WITH polled AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id FROM ledger.subscription s
    WHERE s.app_id = $1::int AND s.environment = $2::text::ledger.environment AND s.original_transaction_id = $3::text
      AND s.polled_by IS NOT NULL
    UNION
    SELECT p.polled_by FROM ledger.purchase p
    WHERE p.app_id = $1::int AND p.environment = $2::text::ledger.environment AND p.original_transaction_id = $3::text
      AND p.polled_by IS NOT NULL
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > now()) AS keeps_pace
    FROM ledger.poll_schedule s
    WHERE s.receipt_id IN (SELECT receipt_id FROM polled)
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, now()) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, now()) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, now()) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE LEAST(s.lane, 'expiring') END
    FROM locked l WHERE s.receipt_id = l.receipt_id
), put_back AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT p.receipt_id, $1::int, 'expiring', now(), now(), $2::text = 'Sandbox' FROM polled p
    WHERE p.receipt_id NOT IN (SELECT receipt_id FROM locked)
    ON CONFLICT DO NOTHING
)
SELECT count(*) AS receipts FROM polled

-- name: read_received
-- Returns when the notification $2 of app $1 came; no row if it did not.
SELECT n.received_at FROM ledger.notification n WHERE n.app_id = $1::int AND n.apple_id = $2::text

-- name: lock_support_calls
-- Lets one transaction at a time look for and store support calls of app $1.
SELECT pg_advisory_xact_lock(hashtext('ledger.support_call'), $1::int)

-- name: find_support_call
-- Returns the newest support call of app $1 and environment $2 of kind $3 about $4 that asks $5. Of a consumption any, since
-- Apple takes one for each time it asks. is_over: a later call is another one, because Apple has asked anew.
SELECT c.request_id::text AS request_id, c.outcome, c.reason, c.code, c.extended_until, c.attempts, c.answered_at,
       c.asked_at > clock_timestamp() - interval '1 minute' AS is_recent,
       c.kind = 'consumption' AND c.outcome = 'done' AND EXISTS (
            SELECT FROM ledger.notification n
            WHERE n.kind = 'CONSUMPTION_REQUEST' AND n.signed_at > c.answered_at AND n.app_id = c.app_id
              AND n.environment = c.environment AND n.transaction_id = c.subject) AS is_over
FROM ledger.support_call c
WHERE c.app_id = $1::int AND c.environment = $2::text::ledger.environment AND c.kind = $3::text AND c.subject = $4::text
  AND (c.kind = 'consumption' OR c.request = $5::jsonb)
ORDER BY c.first_asked_at DESC LIMIT 1

-- name: repeat_support_call
-- Notes that support call $1 is sent again, with $2.
UPDATE ledger.support_call c
SET request = $2::jsonb, outcome = 'sent', reason = NULL, code = NULL, asked_at = clock_timestamp(), answered_at = NULL,
    attempts = c.attempts + 1
WHERE c.request_id = $1::text::uuid
RETURNING request_id::text AS request_id, outcome, reason, code, extended_until, attempts, answered_at

-- name: insert_support_call
-- Stores a support call of app $1 and environment $2 before it is made: kind $3, about $4, what it asks $5; returns its
-- identifier.
INSERT INTO ledger.support_call (app_id, environment, kind, subject, request)
VALUES ($1::int, $2::text::ledger.environment, $3::text, $4::text, $5::jsonb)
RETURNING request_id::text AS request_id, outcome, reason, code, extended_until, attempts, answered_at

-- name: answer_support_call
-- Stores what came of support call $1: outcome $2, why $3, Apple's code $4, until when a subscription was extended $5.
UPDATE ledger.support_call c
SET outcome = $2::text, reason = $3::text, code = $4::int, extended_until = $5::timestamptz,
    answered_at = clock_timestamp()
WHERE c.request_id = $1::text::uuid
RETURNING request_id::text AS request_id, outcome, reason, code, extended_until, attempts, answered_at

-- name: delete_support_calls
-- Prune: deletes support calls sent before $1, at most $2, oldest first.
DELETE FROM ledger.support_call c
WHERE c.request_id IN (
    SELECT n.request_id FROM ledger.support_call n WHERE n.asked_at < $1::timestamptz ORDER BY n.asked_at LIMIT $2::int)
