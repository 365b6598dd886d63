-- Webhooks: their streams, messages and failures.

-- name: next_customer_versions
-- Entitlements changed: returns the next versions of the streams of customers ($1), which are locked, and the instant to record,
-- no earlier than $2.
SELECT n.customer_id, c.app_id, c.name, COALESCE(max(e.version), 0) + 1 AS version,
       GREATEST(clock_timestamp(), $2::timestamptz) AS recorded_at
FROM unnest($1::bigint[]) AS n(customer_id)
JOIN ledger.customer c USING (customer_id)
LEFT JOIN ledger.event e ON e.customer_id = n.customer_id AND e.subscription_id IS NULL AND e.purchase_id IS NULL
WHERE c.erased_at IS NULL
GROUP BY n.customer_id, c.app_id, c.name
ORDER BY n.customer_id

-- name: reserve_webhook
-- Returns the number of a new webhook, to which its secret is sealed.
SELECT nextval('ledger.webhook_webhook_id_seq')::int AS webhook_id

-- name: insert_webhook
-- Adds webhook $1 of app $2 (null: every app) with url $3, kinds $4 (none: every kind), environment $5, concurrency $6 and
-- sealed secret $7; it begins after position $8.
INSERT INTO ledger.webhook (webhook_id, app_id, url, kinds, environment, concurrency, sealed_secret, position)
VALUES ($1::int, $2::int, $3::text, NULLIF($4::text[], '{}'), $5::text::ledger.environment, $6::smallint, $7::bytea,
        $8::bigint)

-- name: read_webhooks
-- Returns webhooks $1 (null: all) of app $2 (null: every app) as the view shows them, with whole URL and sealed secrets.
SELECT v.*, w.url AS whole_url, w.sealed_secret, w.sealed_previous_secret
FROM perennial.webhook_now v JOIN ledger.webhook w USING (webhook_id)
WHERE ($1::int IS NULL OR v.webhook_id = $1::int) AND ($2::text IS NULL OR v.bundle_id = $2::text)
ORDER BY v.webhook_id

-- name: read_webhook_waiting
-- Returns what waits for webhook $1, the oldest first, at most $2.
SELECT v.* FROM perennial.webhook_waiting_now v WHERE v.webhook_id = $1::int ORDER BY v.since, v.position LIMIT $2::int

-- name: set_webhook
-- Changes webhook $1: url $2, concurrency $3, sealed secret $4, those that sign beside it $5, empty: none (nulls: as before).
UPDATE ledger.webhook w
SET url = COALESCE($2::text, w.url), concurrency = COALESCE($3::smallint, w.concurrency),
    sealed_secret = COALESCE($4::bytea, w.sealed_secret),
    sealed_previous_secret = NULLIF(COALESCE($5::bytea, w.sealed_previous_secret), '')
WHERE w.webhook_id = $1::int

-- name: remove_webhook
-- Removes webhook $1 with what waits for it.
DELETE FROM ledger.webhook w WHERE w.webhook_id = $1::int

-- name: find_webhook_line
-- Returns the stream of webhook $1 whose first undelivered event is at position $2.
SELECT l.stream_of, l.stream_id, l.position FROM ledger.webhook_line l
WHERE l.webhook_id = $1::int AND l.position = $2::bigint

-- name: replay_webhook
-- Sets webhook $1 back to position $2; what waits behind it goes, because it is read again.
WITH back AS (
    UPDATE ledger.webhook w SET position = $2::bigint WHERE w.webhook_id = $1::int RETURNING w.webhook_id, w.position)
DELETE FROM ledger.webhook_line l USING back b WHERE l.webhook_id = b.webhook_id AND l.position > b.position

-- name: retry_webhook
-- Makes everything that waits for webhook $1 due now, and ends its rest.
WITH woken AS (
    UPDATE ledger.webhook w SET rest_until = clock_timestamp() WHERE w.webhook_id = $1::int AND w.state = 'resting')
UPDATE ledger.webhook_line l SET next_at = clock_timestamp() WHERE l.webhook_id = $1::int

-- name: seize_webhook
-- Takes webhook $1 from its worker before a change by hand: whatever the worker has under way is refused. Returns its fence.
UPDATE ledger.webhook w SET fence = w.fence + 1, lease_until = '-infinity' WHERE w.webhook_id = $1::int
RETURNING w.webhook_id, w.fence, w.position, (SELECT a.bundle_id FROM ledger.app a WHERE a.app_id = w.app_id) AS bundle_id

-- name: find_webhook_start
-- Returns the position after which the feed has everything that was recorded from $1 on; no row: the first. A minute more
-- is for transactions that committed in another order than they were recorded.
SELECT f.position FROM ledger.event_feed f JOIN ledger.event e USING (event_id)
WHERE e.recorded_at < $1::timestamptz - interval '1 minute' ORDER BY f.position DESC LIMIT 1

-- name: lease_webhooks
-- Worker: leases webhooks that no worker has, for $1 seconds, at most $2; the fence refuses the writes of the last worker.
UPDATE ledger.webhook w SET fence = w.fence + 1, lease_until = clock_timestamp() + make_interval(secs => $1::float8)
WHERE w.webhook_id IN (
    SELECT n.webhook_id FROM ledger.webhook n
    WHERE n.state <> 'off' AND n.lease_until < clock_timestamp()
    ORDER BY n.webhook_id LIMIT $2::int FOR NO KEY UPDATE SKIP LOCKED)
RETURNING w.webhook_id, w.fence, w.position

-- name: look_at_webhook
-- Worker: returns how webhook $1 is under fence $2, with the feed's newest position. No row: another worker has it, or it is
-- off.
SELECT w.url, w.concurrency, w.sealed_secret, w.sealed_previous_secret, w.position, w.state, w.rests,
       w.state = 'resting' AND w.rest_until > clock_timestamp() AS is_resting, f.position AS newest,
       EXISTS (SELECT FROM ledger.webhook_line l
               WHERE l.webhook_id = w.webhook_id AND l.next_at <= clock_timestamp()) AS has_due
FROM ledger.webhook w CROSS JOIN ledger.feed f
WHERE w.webhook_id = $1::int AND w.fence = $2::bigint AND w.state <> 'off'

-- name: read_webhook_window
-- Worker: returns the events for webhook $1 after position $2 up to $3, in order, at most $4: with their messages, but those
-- of streams that wait.
WITH found AS MATERIALIZED (
    SELECT f.position, s.stream_of, s.stream_id,
           EXISTS (SELECT FROM ledger.webhook_line l
                   WHERE l.webhook_id = w.webhook_id AND l.stream_of = s.stream_of AND l.stream_id = s.stream_id) AS waits
    FROM ledger.webhook w
    JOIN ledger.event_feed f ON f.position > $2::bigint AND f.position <= $3::bigint
    JOIN ledger.event e USING (event_id)
    CROSS JOIN LATERAL (
        SELECT COALESCE(e.subscription_id, e.purchase_id, e.customer_id) AS stream_id,
               CASE WHEN e.subscription_id IS NOT NULL THEN 'subscription' WHEN e.purchase_id IS NOT NULL THEN 'purchase'
                    ELSE 'customer' END AS stream_of) s
    WHERE w.webhook_id = $1::int AND ledger.webhook_takes(w, e)
    ORDER BY f.position LIMIT $4::int
)
SELECT p.*, m.identity, m.body
FROM found p
LEFT JOIN ledger.webhook_messages(ARRAY(SELECT n.position FROM found n WHERE NOT n.waits)) m USING (position)
ORDER BY p.position

-- name: read_webhook_lines
-- Worker: returns the streams that wait for webhook $1 and are due, or with $3 all, at most $2, with their next events and
-- messages, together about $2. No message: no event of the stream is for the webhook any more.
WITH due AS MATERIALIZED (
    SELECT l.stream_of, l.stream_id, l.position AS line, l.attempts, w AS webhook
    FROM ledger.webhook_line l JOIN ledger.webhook w USING (webhook_id)
    WHERE l.webhook_id = $1::int AND ($3::bool OR l.next_at <= clock_timestamp())
    ORDER BY l.next_at LIMIT $2::int
), found AS MATERIALIZED (
    SELECT d.stream_of, d.stream_id, d.line, COALESCE(f.position, d.line) AS position,
           CASE WHEN COALESCE(f.position, d.line) = d.line THEN d.attempts ELSE 0 END AS attempts, f.position IS NOT NULL AS is_taken
    FROM due d
    LEFT JOIN LATERAL (
        SELECT n AS position FROM ledger.webhook_following(d.webhook, d.stream_of, d.stream_id, d.line - 1) n
        LIMIT GREATEST(1, $2::int / (SELECT count(*) FROM due))) f ON true
)
SELECT f.position, f.stream_of, f.stream_id, f.line, f.attempts, m.identity, m.body
FROM found f
LEFT JOIN ledger.webhook_messages(ARRAY(SELECT n.position FROM found n WHERE n.is_taken)) m USING (position)
ORDER BY f.position

-- name: move_webhook
-- Worker: leases webhook $1 under fence $2 for $4 seconds, and moves it forward to position $3: streams ($5, $6) that do not
-- wait yet begin to at $7. Where $3 is null, streams wait at $7 already, and their events up to $8 (null: none) are done: each
-- waits for its next event, or its line goes. Where there is $9, the event failed: it waits for $9 seconds, because of
-- status $10 and reason $11. The lock orders this after a move that another event of a stream is part of. No row: another
-- worker has it.
WITH held AS MATERIALIZED (
    UPDATE ledger.webhook w
    SET position = GREATEST(w.position, $3::bigint), lease_until = clock_timestamp() + make_interval(secs => $4::float8)
    WHERE w.webhook_id = $1::int AND w.fence = $2::bigint
    RETURNING w AS webhook, w.webhook_id
), news AS MATERIALIZED (
    SELECT h.webhook_id, n.*, clock_timestamp() + make_interval(secs => COALESCE(n.seconds, 0)) AS next_at,
           (n.seconds IS NOT NULL)::int AS failed, CASE WHEN n.done IS NULL THEN n.position ELSE (
               SELECT min(f) FROM ledger.webhook_following(h.webhook, n.stream_of, n.stream_id, n.done) f) END AS head
    FROM held h
    CROSS JOIN unnest($5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::float8[], $10::smallint[], $11::text[])
        AS n(stream_of, stream_id, position, done, seconds, status, reason)
), added AS (
    INSERT INTO ledger.webhook_line (webhook_id, stream_of, stream_id, position, attempts, next_at, status, reason)
    SELECT t.webhook_id, t.stream_of, t.stream_id, t.position, t.failed, t.next_at, t.status, t.reason
    FROM news t WHERE $3::bigint IS NOT NULL
    ON CONFLICT DO NOTHING
), moved AS (
    UPDATE ledger.webhook_line l
    SET position = t.head, status = t.status, reason = t.reason, next_at = t.next_at,
        attempts = CASE WHEN t.done IS NULL THEN l.attempts ELSE 0 END + t.failed,
        since = CASE WHEN t.done IS NULL THEN l.since ELSE clock_timestamp() END
    FROM news t
    WHERE $3::bigint IS NULL AND l.webhook_id = t.webhook_id AND l.stream_of = t.stream_of AND l.stream_id = t.stream_id
      AND l.position = t.position AND t.head IS NOT NULL
), gone AS (
    DELETE FROM ledger.webhook_line l USING news t
    WHERE l.webhook_id = t.webhook_id AND l.stream_of = t.stream_of AND l.stream_id = t.stream_id
      AND l.position = t.position AND t.head IS NULL)
SELECT h.webhook_id FROM held h

-- name: rest_webhook
-- Sets the state of webhook $1 under fence $2: $3, because of $4, with rests $5, and for $6 seconds where it rests. No row:
-- another worker has it.
UPDATE ledger.webhook w
SET state = $3::text, reason = $4::text, rests = $5::int,
    state_since = CASE WHEN w.state = $3::text THEN w.state_since ELSE clock_timestamp() END,
    rest_until = CASE WHEN $3::text = 'resting' THEN clock_timestamp() + make_interval(secs => $6::float8) END
WHERE w.webhook_id = $1::int AND w.fence = $2::bigint
RETURNING w.webhook_id
