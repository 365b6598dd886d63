-- Apps, their secrets and settings, and the keys of the API.

-- name: store_offer_key
-- Gives the app with bundle $1 the offer key $2 of issuer $3 (null: unknown), sealed as $4, in place of an earlier one.
INSERT INTO ledger.offer_key (app_id, key_id, issuer_id, sealed_key)
SELECT a.app_id, $2::text, $3::text, $4::bytea FROM ledger.app a WHERE a.bundle_id = $1::text
ON CONFLICT (app_id) DO UPDATE
SET key_id = EXCLUDED.key_id, issuer_id = EXCLUDED.issuer_id, sealed_key = EXCLUDED.sealed_key, stored_at = now()
RETURNING app_id

-- name: remove_offer_key
-- Takes the offer key of the app with bundle $1 away.
DELETE FROM ledger.offer_key k USING ledger.app a
WHERE a.app_id = k.app_id AND a.bundle_id = $1::text
RETURNING k.key_id

-- name: read_offer_key
-- Returns the sealed offer key of the app with bundle $1; no row: it has none.
SELECT k.key_id, k.issuer_id, k.sealed_key
FROM ledger.offer_key k JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text

-- name: remove_app
-- Removes app $1 unless receipts of it are stored: its secrets with what Apple said of them, its keys, its webhooks, its
-- address of notifications and the counts of refused bundle ids and unread claims go, and its API keys end. Without its
-- server key only verifyReceipt can be asked. Returns no row where receipts are left.
WITH removed AS (
    UPDATE ledger.app a
    SET removed_at = now(), sealed_secret = NULL, sealed_previous_secret = NULL, notification_digest = NULL,
        verifier = 'verify_receipt', compares_since = NULL
    WHERE a.app_id = $1::int
      AND NOT EXISTS (SELECT FROM ledger.receipt r WHERE r.app_id = a.app_id AND r.erased_at IS NULL)
    RETURNING a.app_id
), ended AS (
    UPDATE ledger.api_key k SET revoked_at = now() FROM removed n WHERE k.app_id = n.app_id AND k.revoked_at IS NULL
), unsealed AS (
    DELETE FROM ledger.offer_key k USING removed n WHERE k.app_id = n.app_id
), unkeyed AS (
    DELETE FROM ledger.server_key k USING removed n WHERE k.app_id = n.app_id
), untried AS (
    DELETE FROM ledger.secret_trial t USING removed n WHERE t.app_id = n.app_id
), unread AS (
    DELETE FROM ledger.unread_claim u USING removed n WHERE u.app_id = n.app_id
), uncounted AS (
    DELETE FROM ledger.refused_bundle b USING removed n WHERE b.app_id = n.app_id
), unhooked AS (
    DELETE FROM ledger.webhook w USING removed n WHERE w.app_id = n.app_id
)
SELECT n.app_id FROM removed n

-- name: read_unerased
-- Returns customers of app $1 who were not erased, by the names that mean them now, at most $2.
SELECT c.name FROM ledger.customer c
WHERE c.app_id = $1::int AND c.erased_at IS NULL AND c.merged_into IS NULL
ORDER BY c.name LIMIT $2::int

-- name: read_unclaimed_receipts
-- Returns receipts of app $1 that no customer uploaded and that were not erased, at most $2.
SELECT r.receipt_id FROM ledger.receipt r
WHERE r.app_id = $1::int AND r.erased_at IS NULL
  AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
ORDER BY r.receipt_id LIMIT $2::int

-- name: read_apps
-- Returns every app that was not removed, with its settings, sealed secrets, server key and budget; an app pauses for its own reasons
-- or because Apple does not respond at all. Calls of the Server API pause in each environment on their own.
SELECT a.app_id, a.bundle_id, a.name, a.sealed_secret, a.sealed_previous_secret, a.sandbox_allowed,
       a.ownership_policy::text AS ownership_policy, a.leeway_ms, a.sandbox_leeway_ms, a.outage_allowance_ms,
       a.pre_check_spread_ms, a.sweep, a.notification_digest IS NOT NULL AS takes_notifications,
       k.key_id AS offer_key_id, k.issuer_id AS offer_issuer_id,
       a.verifier, a.apple_app_id, v.key_id AS server_key_id, v.issuer_id AS server_issuer_id, v.sealed_key AS sealed_server_key,
       b.rate, b.burst, b.slowed_to, b.slowed_at, b.failures, GREATEST(b.paused_until, 'epoch') AS app_paused_until,
       now() AS at, g.failures AS apple_failures,
       CASE WHEN GREATEST(b.paused_until, g.paused_until) > now() THEN GREATEST(b.paused_until, g.paused_until) END AS paused_until,
       CASE WHEN b.paused_until >= g.paused_until THEN b.paused_because ELSE g.paused_because END AS paused_because,
       CASE WHEN p.paused_since IS NOT NULL THEN GREATEST(p.try_at, now()) END AS production_tried_at,
       CASE WHEN x.paused_since IS NOT NULL THEN GREATEST(x.try_at, now()) END AS sandbox_tried_at,
       p.is_untold AS production_is_untold, x.is_untold AS sandbox_is_untold,
       p.previous_since AS production_previous_since, x.previous_since AS sandbox_previous_since,
       CASE WHEN p.refused_at IS NOT NULL AND p.paused_since IS NULL
                 AND (p.is_untold OR COALESCE(p.proved_at, x.proved_at, x.paused_since, p.previous_since, x.previous_since) IS NULL)
            THEN cardinality(p.refused_receipts) END AS production_doubted_by,
       CASE WHEN x.refused_at IS NOT NULL AND x.paused_since IS NULL
                 AND (x.is_untold OR COALESCE(x.proved_at, p.proved_at, p.paused_since, p.previous_since, x.previous_since) IS NULL)
            THEN cardinality(x.refused_receipts) END AS sandbox_doubted_by,
       calls.production_until, calls.production_because, calls.sandbox_until, calls.sandbox_because
FROM ledger.app a JOIN ledger.app_budget b USING (app_id) CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.offer_key k USING (app_id)
LEFT JOIN ledger.server_key v USING (app_id)
LEFT JOIN ledger.secret_trial p ON p.app_id = a.app_id AND p.environment = 'Production'
LEFT JOIN ledger.secret_trial x ON x.app_id = a.app_id AND x.environment = 'Sandbox'
CROSS JOIN LATERAL (
    SELECT max(c.paused_until) FILTER (WHERE c.environment = 'Production') AS production_until,
           max(c.refused_because) FILTER (WHERE c.environment = 'Production') AS production_because,
           max(c.paused_until) FILTER (WHERE c.environment = 'Sandbox') AS sandbox_until,
           max(c.refused_because) FILTER (WHERE c.environment = 'Sandbox') AS sandbox_because
    FROM ledger.call_budget c
    WHERE c.app_id = a.app_id AND c.endpoint IN ('statuses', 'history') AND c.paused_until > now()) calls
WHERE a.removed_at IS NULL
ORDER BY a.bundle_id

-- name: add_app
-- Registers an app with its budget: bundle $1, name $2, sealed secrets $3 and $4, sandbox $5, rate $6, burst $7. An app that
-- was removed is registered again. Returns no row where the app is registered.
WITH new AS (
    INSERT INTO ledger.app AS a (bundle_id, name, sealed_secret, sealed_previous_secret, sandbox_allowed)
    VALUES ($1::text, $2::text, $3::bytea, $4::bytea, $5::boolean)
    ON CONFLICT ON CONSTRAINT app_bundle_id_unique DO UPDATE
    SET name = EXCLUDED.name, sealed_secret = EXCLUDED.sealed_secret,
        sealed_previous_secret = EXCLUDED.sealed_previous_secret, sandbox_allowed = EXCLUDED.sandbox_allowed,
        removed_at = NULL
    WHERE a.removed_at IS NOT NULL
    RETURNING app_id
)
INSERT INTO ledger.app_budget AS b (app_id, rate, burst, tokens)
SELECT app_id, $6::float8, $7::float8, $7::float8 FROM new
ON CONFLICT (app_id) DO UPDATE SET rate = EXCLUDED.rate, burst = EXCLUDED.burst, tokens = EXCLUDED.tokens
RETURNING b.app_id

-- name: set_app
-- Changes the given settings (null: keep) of the app with bundle $1: name $2, sandbox $3, ownership policy $4, rate $5,
-- burst $6, sweep $7; in milliseconds: the spread of checks before an end $8, leeway $9, leeway in the sandbox $10,
-- outage allowance $11; verifier $12, Apple's number of the app $13. A default burst (the calls of one second) follows the rate.
WITH changed AS (
    UPDATE ledger.app SET
        name = COALESCE($2::text, name),
        sandbox_allowed = COALESCE($3::boolean, sandbox_allowed),
        ownership_policy = COALESCE($4::text::ledger.ownership_policy, ownership_policy),
        sweep = COALESCE($7::text, sweep), pre_check_spread_ms = COALESCE($8::bigint, pre_check_spread_ms),
        leeway_ms = COALESCE($9::bigint, leeway_ms), sandbox_leeway_ms = COALESCE($10::bigint, sandbox_leeway_ms),
        outage_allowance_ms = COALESCE($11::bigint, outage_allowance_ms),
        verifier = COALESCE($12::text, verifier),
        compares_since = CASE WHEN COALESCE($12::text, verifier) = 'both' THEN COALESCE(compares_since, now()) END,
        apple_app_id = COALESCE($13::bigint, apple_app_id)
    WHERE bundle_id = $1::text
    RETURNING app_id
)
UPDATE ledger.app_budget b
SET rate = COALESCE($5::float8, b.rate), burst = next.burst, tokens = LEAST(b.tokens, next.burst)
FROM changed c
JOIN ledger.app_budget present USING (app_id)
CROSS JOIN LATERAL (
    SELECT CASE WHEN $6::float8 IS NOT NULL THEN $6::float8
                WHEN present.burst = GREATEST(1, present.rate) THEN GREATEST(1, COALESCE($5::float8, present.rate))
                ELSE present.burst END AS burst) next
WHERE b.app_id = c.app_id
RETURNING b.app_id

-- name: rotate_secret
-- Gives the app with bundle $1 the sealed secret $2, and $3 as the previous one; null: the present one, but where Apple
-- accepts only the one before that, this one stays, so that checks go on. A pause because Apple refused the former one
-- ends by the next trial, which is due now. Receipts that Apple never vouched for are due at once where the last call
-- brought nothing: the former secret may be why. So are receipts that are pointers, because only the Server API answered
-- about them: verifyReceipt may vouch for them now, or after the trial where it pauses.
WITH changed AS (
    UPDATE ledger.app a
    SET sealed_previous_secret = COALESCE($3::bytea, CASE WHEN (
            SELECT bool_or(t.previous_since IS NOT NULL) AND bool_and(t.proved_at IS NULL)
            FROM ledger.secret_trial t WHERE t.app_id = a.app_id) THEN sealed_previous_secret ELSE sealed_secret END),
        sealed_secret = $2::bytea
    WHERE bundle_id = $1::text
    RETURNING app_id, verifier
), untried AS (
    UPDATE ledger.secret_trial t
    SET proved_at = NULL, previous_since = NULL, refused_at = NULL, refused_receipts = '{}', is_untold = false, unanswered = 0,
        try_at = '-infinity'
    FROM changed c WHERE t.app_id = c.app_id
), waiting AS MATERIALIZED (
    SELECT s.receipt_id
    FROM changed c
    JOIN ledger.poll_schedule s USING (app_id)
    JOIN ledger.receipt r USING (receipt_id)
    WHERE s.backs_off AND s.leased_by IS NULL AND s.due_at > now() AND r.verified_at IS NULL
      AND s.lane IN ('new', 'sweep')
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s SKIP LOCKED
), woken AS (
    UPDATE ledger.poll_schedule s SET due_at = now(), scheduled_for = now(), lane = 'new'
    FROM waiting w WHERE s.receipt_id = w.receipt_id
), pointer AS MATERIALIZED (
    SELECT s.receipt_id, now() + CASE WHEN EXISTS (
               SELECT FROM ledger.secret_trial t WHERE t.app_id = c.app_id AND t.paused_since IS NOT NULL OFFSET 0)
           THEN interval '1 minute' ELSE interval '0' END AS at
    FROM changed c
    JOIN ledger.poll_schedule s USING (app_id)
    JOIN ledger.receipt r USING (receipt_id)
    WHERE c.verifier <> 'verify_receipt' AND s.leased_by IS NULL AND r.form = 'receipt' AND NOT r.vouched
      AND r.verified_at IS NOT NULL AND s.lane <> 'quarantine'
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s SKIP LOCKED
), asked AS (
    UPDATE ledger.poll_schedule s
    SET due_at = LEAST(s.due_at, p.at), scheduled_for = LEAST(s.scheduled_for, p.at), lane = ledger.pulled_lane(s),
        fingerprint = NULL
    FROM pointer p WHERE s.receipt_id = p.receipt_id
)
SELECT app_id FROM changed

-- name: find_probe_receipts
-- Returns receipts of app $1 that can test its shared secret, at most $2, in environment $3 (null: any): verifyReceipt
-- vouched for them, Apple did not refuse them since, and they contain subscriptions, whichever receipt polls those. A
-- transaction is no receipt. It looks at a hundred in each environment, because an app may have millions: production
-- receipts come first, then those whose latest answer vouched, then the newest.
SELECT DISTINCT ON (r.environment, r.outcome, r.receipt_id)
       r.receipt_id, r.environment::text AS environment, COALESCE(r.latest_receipt, r.data) AS data
FROM unnest(enum_range(NULL::ledger.environment)) e(environment)
CROSS JOIN LATERAL (
    SELECT r.*
    FROM ledger.subscription s
    CROSS JOIN LATERAL (
        SELECT r.* FROM ledger.receipt_subscription l JOIN ledger.receipt r USING (receipt_id)
        WHERE l.subscription_id = s.subscription_id AND l.omitted_at IS NULL AND r.environment = e.environment
          AND r.form = 'receipt' AND r.vouched AND r.rejections = 0 AND r.erased_at IS NULL OFFSET 0) r
    WHERE s.app_id = $1::int AND s.environment = e.environment
    ORDER BY s.original_transaction_id DESC LIMIT 100) r
WHERE e.environment = COALESCE($3::text::ledger.environment, e.environment)
ORDER BY r.environment, r.outcome, r.receipt_id DESC
LIMIT $2::int

-- name: note_refused_secret
-- Records that Apple refused the shared secret of app $1 in environment $2 in a call that began at $3, about receipts $4. An
-- earlier refusal that was not followed by a trial stays. Nothing is written or locked where these receipts are known, or
-- $5 others, or where the sealed secret is no longer $6.
INSERT INTO ledger.secret_trial AS t (app_id, environment, refused_at, refused_receipts)
SELECT a.app_id, $2::text::ledger.environment, $3::timestamptz, $4::bigint[]
FROM ledger.app a
WHERE a.app_id = $1::int AND a.sealed_secret IS NOT DISTINCT FROM $6::bytea AND NOT EXISTS (
    SELECT FROM ledger.secret_trial k
    WHERE k.app_id = $1::int AND k.environment = $2::text::ledger.environment AND k.refused_at IS NOT NULL
      AND (k.refused_receipts @> $4::bigint[] OR cardinality(k.refused_receipts) >= $5::int))
ON CONFLICT (app_id, environment) DO UPDATE
SET refused_at = COALESCE(t.refused_at, EXCLUDED.refused_at),
    refused_receipts = ARRAY(
        SELECT n.id FROM unnest(t.refused_receipts || EXCLUDED.refused_receipts) AS n(id)
        GROUP BY n.id ORDER BY n.id LIMIT $5::int)

-- name: prove_secret
-- Records that Apple accepted the shared secret of app $1 in environment $2, unless that is known or the sealed secret is
-- no longer $3. Refusals before it were about single receipts.
INSERT INTO ledger.secret_trial AS t (app_id, environment, proved_at)
SELECT a.app_id, $2::text::ledger.environment, now()
FROM ledger.app a WHERE a.app_id = $1::int AND a.sealed_secret = $3::bytea
ON CONFLICT (app_id, environment) DO UPDATE
SET proved_at = now(), previous_since = NULL, refused_at = NULL, refused_receipts = '{}', is_untold = false
WHERE t.proved_at IS NULL AND t.paused_since IS NULL

-- name: note_previous_secret
-- Records that Apple refused the shared secret of app $1 in environment $2 and accepted the one before, unless that is known
-- or the sealed secret is no longer $3.
INSERT INTO ledger.secret_trial AS t (app_id, environment, previous_since)
SELECT a.app_id, $2::text::ledger.environment, now()
FROM ledger.app a WHERE a.app_id = $1::int AND a.sealed_secret = $3::bytea
ON CONFLICT (app_id, environment) DO UPDATE SET previous_since = now(), proved_at = NULL
WHERE t.previous_since IS NULL AND t.paused_since IS NULL

-- name: take_secret_trials
-- Takes the shared secrets that are to be tried now, of app $2 alone unless it is null; no other process takes them within
-- $1 seconds. They are those of paused environments, and those that Apple refused about some receipt, of apps with a
-- subscription: without one no receipt can tell.
UPDATE ledger.secret_trial t
SET try_at = now() + make_interval(secs => $1::float8)
FROM ledger.app a
WHERE t.try_at <= now() AND (t.paused_since IS NOT NULL OR t.refused_at IS NOT NULL AND EXISTS (
        SELECT FROM ledger.subscription s WHERE s.app_id = t.app_id OFFSET 0))
  AND a.app_id = t.app_id AND a.removed_at IS NULL AND t.app_id = COALESCE($2::int, t.app_id)
RETURNING t.app_id, t.environment::text AS environment, t.refused_at, t.paused_since IS NOT NULL AS paused, now() AS began_at

-- name: settle_secret_trial
-- Records the verdict of a trial: app $1, environment $2, the sealed secret $3 that was tried (another one now: nothing
-- changes), when it began $4, verdict $5 (accepted, refused, unanswered, untold), whether it proves the present secret
-- $6, seconds between trials $7. A trial without an answer changes no pause, and the next one waits twice as long, up to
-- sixteen times. Where no receipt can tell, a pause ends, and the refusals stay until one can.
UPDATE ledger.secret_trial t
SET refused_at = CASE WHEN $5::text = 'untold' THEN COALESCE(t.refused_at, now())
                      WHEN $5::text = 'unanswered' OR t.refused_at > $4::timestamptz THEN t.refused_at END,
    refused_receipts = CASE WHEN $5::text IN ('untold', 'unanswered') OR t.refused_at > $4::timestamptz
                            THEN t.refused_receipts ELSE '{}' END,
    paused_since = CASE $5::text
        WHEN 'refused' THEN COALESCE(t.paused_since, now()) WHEN 'unanswered' THEN t.paused_since END,
    proved_at = CASE WHEN $6::boolean THEN COALESCE(t.proved_at, now()) ELSE t.proved_at END,
    previous_since = CASE WHEN NOT $6::boolean AND $5::text <> 'refused' THEN t.previous_since END,
    is_untold = CASE $5::text WHEN 'unanswered' THEN t.is_untold ELSE $5::text = 'untold' END,
    unanswered = CASE $5::text WHEN 'unanswered' THEN LEAST(t.unanswered + 1, 100) ELSE 0 END,
    try_at = CASE $5::text
        WHEN 'unanswered' THEN now() + make_interval(secs => $7::float8 * (1 << LEAST(t.unanswered + 1, 4))) ELSE t.try_at END
FROM ledger.app a
WHERE t.app_id = $1::int AND t.environment = $2::text::ledger.environment
  AND a.app_id = t.app_id AND a.sealed_secret IS NOT DISTINCT FROM $3::bytea

-- name: create_key
-- Stores the digest of a new API key: digest $1, scope $2, bundle $3 (null: every app), requests a second $4, burst $5.
INSERT INTO ledger.api_key (digest, scope, app_id, rate, burst)
SELECT $1::bytea, $2::text::ledger.scope, (SELECT app_id FROM ledger.app WHERE bundle_id = $3::text), $4::float8, $5::float8
WHERE $3::text IS NULL OR EXISTS (SELECT FROM ledger.app WHERE bundle_id = $3::text)
RETURNING key_id

-- name: read_keys
-- Returns every API key without its secret parts.
SELECT k.key_id, k.scope::text AS scope, a.bundle_id, k.rate, k.burst, k.created_at, k.revoked_at
FROM ledger.api_key k LEFT JOIN ledger.app a USING (app_id) ORDER BY k.key_id

-- name: find_key
-- Returns the valid API key with digest $1.
SELECT k.key_id, k.scope::text AS scope, a.bundle_id, k.rate, k.burst
FROM ledger.api_key k LEFT JOIN ledger.app a USING (app_id)
WHERE k.digest = $1::bytea AND k.revoked_at IS NULL

-- name: revoke_key
-- Ends the API key $1.
UPDATE ledger.api_key k SET revoked_at = COALESCE(revoked_at, now()) WHERE key_id = $1::int
RETURNING key_id, (SELECT a.bundle_id FROM ledger.app a WHERE a.app_id = k.app_id) AS bundle_id

-- name: store_server_key
-- Gives the app with bundle $1 the server key $2 of issuer $3, sealed as $4, in place of an earlier one, and ends the pauses because
-- Apple refused that one.
WITH stored AS (
    INSERT INTO ledger.server_key AS k (app_id, key_id, issuer_id, sealed_key)
    SELECT a.app_id, $2::text, $3::text, $4::bytea FROM ledger.app a WHERE a.bundle_id = $1::text
    ON CONFLICT (app_id) DO UPDATE
    SET key_id = EXCLUDED.key_id, issuer_id = EXCLUDED.issuer_id, sealed_key = EXCLUDED.sealed_key, stored_at = now(),
        taken_up = 0
    RETURNING k.app_id
), resumed AS (
    UPDATE ledger.call_budget b SET paused_until = '-infinity', refused_because = NULL
    FROM stored s WHERE b.app_id = s.app_id AND b.refused_because IS NOT NULL
)
SELECT s.app_id FROM stored s

-- name: remove_server_key
-- Takes the server key of the app with bundle $1 away, and ends the pauses because Apple refused it.
WITH removed AS (
    DELETE FROM ledger.server_key k USING ledger.app a
    WHERE a.app_id = k.app_id AND a.bundle_id = $1::text
    RETURNING k.app_id
), resumed AS (
    UPDATE ledger.call_budget b SET paused_until = '-infinity', refused_because = NULL
    FROM removed r WHERE b.app_id = r.app_id AND b.refused_because IS NOT NULL
)
SELECT r.app_id FROM removed r

-- name: unschedule
-- Takes receipts ($1) out of the schedule; their rows are locked, and nothing is polled through them.
DELETE FROM ledger.poll_schedule s WHERE s.receipt_id = ANY($1::bigint[])
