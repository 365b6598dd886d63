-- Comparisons of verifyReceipt with the Server API.

-- name: note_comparisons
-- Notes that both channels were asked about the subscriptions that receipts $1 poll, and which subscriptions were
-- compared: apps $2, environments $3, original transactions $4.
INSERT INTO ledger.channel_comparison AS c (subscription_id, tried_at, compared_at)
SELECT s.subscription_id, now(), CASE WHEN k.id IS NOT NULL THEN now() END
FROM ledger.subscription s
LEFT JOIN (SELECT DISTINCT k.app_id, k.environment::ledger.environment AS environment, k.id
           FROM unnest($2::int[], $3::text[], $4::text[]) AS k (app_id, environment, id)) k
       ON k.app_id = s.app_id AND k.environment = s.environment AND k.id = s.original_transaction_id
WHERE s.polled_by = ANY($1::bigint[])
ORDER BY s.subscription_id
ON CONFLICT (subscription_id) DO UPDATE
SET tried_at = EXCLUDED.tried_at, compared_at = COALESCE(EXCLUDED.compared_at, c.compared_at)

-- name: end_differences
-- Ends the open differences of what was compared (apps $1, environments $2, original transactions $3), except those
-- that are seen again: apps $4, environments $5, original transactions $6, transactions $7, facts $8.
WITH seen AS MATERIALIZED (
    SELECT * FROM unnest($4::int[], $5::text[], $6::text[], $7::text[], $8::text[])
        AS s (app_id, environment, original_transaction_id, transaction_id, fact)
), over AS MATERIALIZED (
    SELECT d.difference_id
    FROM (SELECT DISTINCT k.app_id, k.environment::ledger.environment AS environment, k.original_transaction_id
          FROM unnest($1::int[], $2::text[], $3::text[]) AS k (app_id, environment, original_transaction_id)) k
    JOIN ledger.channel_difference d USING (app_id, environment, original_transaction_id)
    WHERE d.agreed_at IS NULL
      AND NOT EXISTS (
          SELECT FROM seen s
          WHERE s.app_id = d.app_id AND s.environment = d.environment::text
            AND s.original_transaction_id = d.original_transaction_id AND s.transaction_id = d.transaction_id
            AND s.fact = d.fact)
    ORDER BY d.difference_id
    FOR UPDATE OF d
)
UPDATE ledger.channel_difference d SET agreed_at = now()
FROM over WHERE d.difference_id = over.difference_id

-- name: store_differences
-- Stores differences: apps $1, environments $2, original transactions $3, transactions $4, facts $5, what
-- verifyReceipt states $6, what the Server API states $7, explanations $8. For $9 seconds a difference may be a delay.
INSERT INTO ledger.channel_difference AS d (
    app_id, environment, original_transaction_id, transaction_id, fact, verify_receipt, server_api, explanation,
    first_seen_at, last_seen_at, waits_until)
SELECT app_id, environment::ledger.environment, id, transaction_id, fact, verify_receipt, server_api, explanation,
       now(), now(), now() + make_interval(secs => $9::float8)
FROM (SELECT DISTINCT ON (app_id, environment, id, transaction_id, fact) *
      FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
           AS n (app_id, environment, id, transaction_id, fact, verify_receipt, server_api, explanation)
      ORDER BY app_id, environment, id, transaction_id, fact) n
ON CONFLICT (app_id, environment, original_transaction_id, transaction_id, fact) WHERE agreed_at IS NULL DO UPDATE
SET verify_receipt = EXCLUDED.verify_receipt, server_api = EXCLUDED.server_api, explanation = EXCLUDED.explanation,
    last_seen_at = EXCLUDED.last_seen_at

-- name: ask_again
-- Moves the next checks of receipts ($1) forward where the channels differ about what they poll and may agree soon: to
-- $2 seconds from now, later the longer they differ.
WITH differing AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id, min(d.first_seen_at) AS since
    FROM ledger.subscription s
    JOIN ledger.channel_difference d USING (app_id, environment, original_transaction_id)
    WHERE s.polled_by = ANY($1::bigint[]) AND d.agreed_at IS NULL AND d.explanation IS NULL AND d.waits_until > now()
    GROUP BY s.polled_by
), locked AS MATERIALIZED (
    SELECT s.receipt_id, now() + GREATEST(make_interval(secs => $2::float8), (now() - f.since) / 2) AS at
    FROM ledger.poll_schedule s
    JOIN differing f USING (receipt_id)
    WHERE s.leased_by IS NULL AND s.lane <> 'quarantine'
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
)
UPDATE ledger.poll_schedule s
SET due_at = LEAST(s.due_at, l.at), scheduled_for = LEAST(s.scheduled_for, l.at)
FROM locked l WHERE s.receipt_id = l.receipt_id

-- name: begin_channel_walk
-- Begins a walk through the receipts of app $1 where both channels are asked: when they began to be, and again $2 seconds
-- after a walk began that is over.
INSERT INTO ledger.channel_walk AS w (app_id, begun_at)
SELECT a.app_id, now() FROM ledger.app a WHERE a.app_id = $1::int AND a.verifier = 'both'
ON CONFLICT (app_id) DO UPDATE SET begun_at = now(), receipt_id = 0
WHERE w.begun_at < (SELECT a.compares_since FROM ledger.app a WHERE a.app_id = w.app_id)
   OR (w.receipt_id IS NULL AND w.begun_at < now() - make_interval(secs => $2::float8))

-- name: continue_channel_walk
-- Goes on with the walk of app $1 through its receipts, $2 at most: makes those due now that poll a subscription with
-- access about which the channels were not compared since both are asked. Another process that walks is left alone.
WITH walk AS MATERIALIZED (
    SELECT w.receipt_id, a.compares_since
    FROM ledger.channel_walk w JOIN ledger.app a USING (app_id)
    WHERE w.app_id = $1::int AND w.receipt_id IS NOT NULL AND a.verifier = 'both'
    FOR UPDATE OF w SKIP LOCKED
), batch AS MATERIALIZED (
    SELECT s.receipt_id, s.due_at
    FROM ledger.poll_schedule s
    WHERE s.app_id = $1::int AND s.receipt_id > (SELECT w.receipt_id FROM walk w)
    ORDER BY s.receipt_id
    LIMIT $2::int
), waiting AS MATERIALIZED (
    SELECT DISTINCT b.receipt_id
    FROM batch b
    CROSS JOIN walk w
    JOIN ledger.subscription s ON s.polled_by = b.receipt_id
    JOIN ledger.receipt r ON r.receipt_id = b.receipt_id AND r.form = 'receipt'
    LEFT JOIN ledger.channel_comparison c USING (subscription_id)
    WHERE b.due_at > now() AND s.access_ends_at > now()
      AND (c.compared_at IS NULL OR c.compared_at < w.compares_since)
), locked AS MATERIALIZED (
    SELECT s.receipt_id
    FROM ledger.poll_schedule s
    JOIN waiting USING (receipt_id)
    WHERE s.leased_by IS NULL AND s.lane = 'sweep'
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s SKIP LOCKED
), hastened AS (
    UPDATE ledger.poll_schedule s
    SET due_at = LEAST(s.due_at, now()), scheduled_for = LEAST(s.scheduled_for, now())
    FROM locked l WHERE s.receipt_id = l.receipt_id
)
UPDATE ledger.channel_walk w
SET receipt_id = (SELECT max(b.receipt_id) FROM batch b)
FROM walk WHERE w.app_id = $1::int

-- name: read_channel_standing
-- How far the comparison of the channels came for the app with bundle $1; no row where only one is asked.
SELECT c.compares_since, now() AS at, c.live, c.compared, (
           SELECT count(*) FROM perennial.channel_difference d
           WHERE d.bundle_id = c.bundle_id AND d.standing IN ('unexplained', 'waiting')) AS open
FROM perennial.channel_coverage c
WHERE c.bundle_id = $1::text
