-- Stores a verified notification of app $1 ($2 kind, $3 subkind, $4 Apple's id, $5 environment, $6 original transaction
-- id, $7 when it was signed, $8 its texts, $9 whether it holds facts, $10 transaction id, $11 account token), and has the
-- receipt that polls its subject asked about $12 seconds from now, or $13 seconds after its last answer or after the check under way:
-- with follow-ups, until an answer shows what it states. A receipt that had retired is scheduled again. A renewal of a subscription that is
-- known to run for another hour waits for the planned check. A repetition does nothing; one that was stored unverified
-- becomes verified. Texts with the account token of an erased customer are not stored, and what they are about is not taken up.
WITH clock AS MATERIALIZED (
    SELECT now() AS at
), news AS MATERIALIZED (
    SELECT FROM clock WHERE $9::boolean AND NOT EXISTS (
        SELECT FROM ledger.notification n
        WHERE n.app_id = $1::int AND n.apple_id = $4::text AND n.signed_at IS NOT NULL)
), token AS MATERIALIZED (
    SELECT EXISTS (
            SELECT FROM ledger.erased_token e
            WHERE e.app_id = $1::int AND e.digest = sha256(convert_to($11::text, 'UTF8')))
       AND NOT EXISTS (
            SELECT FROM ledger.customer c WHERE c.app_id = $1::int AND c.name IN ($11::text, upper($11::text))) AS is_erased
), subject AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id,
           $2::text = 'DID_RENEW' AND s.expires_at > clock.at + interval '1 hour' AS waits
    FROM news, clock, ledger.subscription s
    WHERE s.app_id = $1::int AND s.environment = $5::text::ledger.environment
      AND s.original_transaction_id = $6::text AND s.polled_by IS NOT NULL
    UNION ALL
    SELECT p.polled_by, false
    FROM news, ledger.purchase p
    WHERE p.app_id = $1::int AND p.environment = $5::text::ledger.environment
      AND p.original_transaction_id = $6::text AND p.polled_by IS NOT NULL
), wanted AS MATERIALIZED (
    SELECT w.receipt_id, GREATEST(
               clock.at + make_interval(secs => $12::float8),
               CASE WHEN s.leased_by IS NOT NULL AND s.due_at > clock.at THEN clock.at
                    ELSE GREATEST(r.asked_at, s.confirmed_at) END + make_interval(secs => $13::float8)) AS at
    FROM (SELECT receipt_id FROM subject WHERE NOT waits GROUP BY receipt_id) w
    JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    CROSS JOIN clock
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > clock.at) AS keeps_pace
    FROM ledger.poll_schedule s, clock
    WHERE s.receipt_id IN (SELECT receipt_id FROM wanted)
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, w.at) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, w.at) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, w.at) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE LEAST(s.lane, 'retry') END,
        follow_ups = 4, fingerprint = NULL
    FROM locked l JOIN wanted w USING (receipt_id) WHERE s.receipt_id = l.receipt_id
), forgotten AS (
    -- The planned check is read in full, so that details ride along.
    UPDATE ledger.poll_schedule s SET fingerprint = NULL
    FROM subject x WHERE x.waits AND s.receipt_id = x.receipt_id
), put_back AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups, is_sandbox)
    SELECT w.receipt_id, $1::int, 'retry', w.at, w.at, 4, $5::text IS NOT DISTINCT FROM 'Sandbox'
    FROM wanted w WHERE w.receipt_id NOT IN (SELECT receipt_id FROM locked)
    ON CONFLICT (receipt_id) DO UPDATE SET follow_ups = 4, fingerprint = NULL
)
INSERT INTO ledger.notification AS n (
    app_id, received_at, version, kind, subkind, apple_id, environment, original_transaction_id, signed_at, effect,
    check_at, texts, body, transaction_id, account_token)
SELECT $1::int, clock.at, 2, $2::text, $3::text, $4::text, $5::text::ledger.environment, $6::text, $7::timestamptz,
       CASE WHEN NOT $9::boolean THEN 'no_facts'
            WHEN EXISTS (SELECT FROM wanted) THEN 'asked'
            WHEN EXISTS (SELECT FROM subject) THEN 'planned'
            WHEN token.is_erased THEN 'no_facts'
            ELSE 'unpolled' END,
       (SELECT min(w.at) FROM wanted w), CASE WHEN NOT token.is_erased THEN $8::bytea END,
       CASE WHEN token.is_erased THEN 'null'::json END, $10::text, CASE WHEN NOT token.is_erased THEN $11::text END
FROM clock CROSS JOIN token
ON CONFLICT (app_id, apple_id) DO UPDATE SET
    kind = EXCLUDED.kind, subkind = EXCLUDED.subkind, environment = EXCLUDED.environment,
    original_transaction_id = EXCLUDED.original_transaction_id, signed_at = EXCLUDED.signed_at, effect = EXCLUDED.effect,
    check_at = EXCLUDED.check_at, texts = EXCLUDED.texts, transaction_id = EXCLUDED.transaction_id,
    account_token = EXCLUDED.account_token, reason = NULL, body = EXCLUDED.body
    WHERE n.signed_at IS NULL
RETURNING n.notification_id, n.effect
