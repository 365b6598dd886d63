-- Stores a notification of app $1 ($2 version, $3 kind, $4 subkind, $5 Apple's id, $6 environment, $7 original
-- transaction id, $8 body, $9 about another app, $12 why it is not verified). Moves the next check of the item it names forward to $10 seconds from
-- now, or to $11 seconds after the last answer about the receipt or after the check under way. A repetition does nothing. The receipt
-- that polls the item does the check; a receipt in quarantine keeps its schedule.
WITH clock AS MATERIALIZED (
    SELECT now() AS at
), news AS MATERIALIZED (
    SELECT FROM clock WHERE NOT EXISTS (
        SELECT FROM ledger.notification n WHERE n.app_id = $1::int AND n.apple_id = $5::text)
), polled AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id
    FROM news, ledger.subscription s
    WHERE NOT $9::boolean AND s.app_id = $1::int AND s.environment = $6::text::ledger.environment
      AND s.original_transaction_id = $7::text AND s.polled_by IS NOT NULL
    UNION
    SELECT p.polled_by
    FROM news, ledger.purchase p
    WHERE NOT $9::boolean AND p.app_id = $1::int AND p.environment = $6::text::ledger.environment
      AND p.original_transaction_id = $7::text AND p.polled_by IS NOT NULL
), wanted AS MATERIALIZED (
    SELECT GREATEST(
               clock.at + make_interval(secs => $10::float8),
               max(CASE WHEN s.leased_by IS NOT NULL AND s.due_at > clock.at THEN clock.at
                        ELSE GREATEST(r.asked_at, s.confirmed_at) END) + make_interval(secs => $11::float8)) AS at
    FROM clock
    LEFT JOIN polled ON true
    LEFT JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    GROUP BY clock.at
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > clock.at) AS keeps_pace
    FROM ledger.poll_schedule s, clock
    WHERE s.receipt_id IN (SELECT receipt_id FROM polled)
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, wanted.at) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, wanted.at) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, wanted.at) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE LEAST(s.lane, 'retry') END
    FROM locked l, wanted WHERE s.receipt_id = l.receipt_id
), put_back AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT p.receipt_id, $1::int, 'retry', wanted.at, wanted.at, $6::text IS NOT DISTINCT FROM 'Sandbox'
    FROM polled p, wanted
    WHERE p.receipt_id NOT IN (SELECT receipt_id FROM locked)
    ON CONFLICT DO NOTHING
)
INSERT INTO ledger.notification (
    app_id, received_at, version, kind, subkind, apple_id, environment, original_transaction_id, effect, reason,
    check_at, body)
SELECT $1::int, clock.at, $2::smallint, $3::text, $4::text, $5::text, $6::text::ledger.environment, $7::text, e.effect, $12::text,
       CASE WHEN e.effect IN ('pulled', 'awaited') THEN wanted.at END, $8::text::json
FROM news, clock, wanted, LATERAL (
    SELECT CASE WHEN $9::boolean THEN 'ignored'
                WHEN $7::text IS NULL OR $6::text IS NULL THEN 'no_subscription'
                WHEN NOT EXISTS (SELECT FROM polled) THEN 'unknown'
                WHEN EXISTS (SELECT FROM locked WHERE keeps_pace) THEN 'awaited'
                ELSE 'pulled' END AS effect) e
ON CONFLICT DO NOTHING
RETURNING effect
