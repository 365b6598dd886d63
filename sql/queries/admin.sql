-- What the admin pages show, and who is signed in.

-- name: list_admin_customers
-- Customers: looks at up to $7 customers of app $1 after the name $2, in the order of their bytes, and returns those with a
-- subscription in the state $3, of the product $4, and with net spending of at least $5 thousandths in a currency (nulls:
-- any), at most $6. Every row has the last name looked at and whether there may be more; without a name: none was found.
WITH page AS MATERIALIZED (
    SELECT c.customer_id, c.name, c.created_at FROM ledger.customer c
    WHERE c.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND c.name ~>~ $2::text
      AND c.erased_at IS NULL AND c.merged_into IS NULL
    ORDER BY c.name USING ~<~ LIMIT $7::int
), owned AS MATERIALIZED (
    SELECT p.customer_id, o.subscription_id, o.purchase_id
    FROM page p
    CROSS JOIN LATERAL (
        SELECT o.subscription_id, o.purchase_id FROM ledger.ownership o
        WHERE o.customer_id = p.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
), held AS (
    SELECT o.customer_id,
           array_agg(v.state ORDER BY v.entitled DESC, v.expires_at DESC) AS states,
           array_agg(COALESCE(v.reason, '') ORDER BY v.entitled DESC, v.expires_at DESC) AS reasons,
           array_agg(v.product_id ORDER BY v.entitled DESC, v.expires_at DESC) AS products,
           max(v.expires_at) AS expires_at, COALESCE(bool_or(v.state = $3::text), false) AS in_state,
           COALESCE(bool_or(v.product_id = $4::text), false) AS of_product
    FROM owned o
    CROSS JOIN LATERAL (
        SELECT v.state, v.reason, v.entitled, v.expires_at, v.product_id FROM ledger.subscription_state v
        WHERE v.subscription_id = o.subscription_id OFFSET 0) v
    GROUP BY o.customer_id
), spent AS (
    SELECT t.customer_id, max(t.amount) AS most,
           array_agg(t.currency ORDER BY t.amount DESC, t.currency) AS currencies,
           array_agg(t.amount ORDER BY t.amount DESC, t.currency) AS amounts
    FROM (
        SELECT o.customer_id, r.currency, sum(r.amount_milliunits)::bigint AS amount
        FROM owned o JOIN ledger.summary_revenue r USING (subscription_id)
        WHERE r.currency IS NOT NULL AND r.occurred_at <= now()
        GROUP BY o.customer_id, r.currency) t
    GROUP BY t.customer_id
), found AS (
    SELECT p.name, p.created_at, h.states, h.reasons, h.products, h.expires_at, s.currencies, s.amounts
    FROM page p LEFT JOIN held h USING (customer_id) LEFT JOIN spent s USING (customer_id)
    WHERE ($3::text IS NULL OR h.in_state) AND ($4::text IS NULL OR h.of_product)
      AND ($5::bigint IS NULL OR s.most >= $5::bigint)
    ORDER BY p.name USING ~<~ LIMIT $6::int
)
SELECT f.name, f.created_at, COALESCE(f.states, '{}') AS states, COALESCE(f.reasons, '{}') AS reasons,
       COALESCE(f.products, '{}') AS products, f.expires_at,
       COALESCE(f.currencies, '{}') AS currencies, COALESCE(f.amounts, '{}') AS amounts,
       CASE WHEN (SELECT count(*) FROM found) = $6::int
            THEN (SELECT n.name FROM found n ORDER BY n.name USING ~>~ LIMIT 1)
            ELSE (SELECT n.name FROM page n ORDER BY n.name USING ~>~ LIMIT 1) END AS last_name,
       (SELECT count(*) FROM found) = $6::int OR (SELECT count(*) FROM page) = $7::int AS is_more
FROM (SELECT) one LEFT JOIN found f ON true
ORDER BY f.name USING ~<~

-- name: read_answer_bodies
-- Customer: returns Apple's answers with the numbers $1 as they came, at most $2; those without a body are left out.
SELECT o.observation_id, o.body FROM ledger.observation o
WHERE o.observation_id = ANY($1::bigint[]) AND o.body IS NOT NULL
ORDER BY o.observation_id LIMIT $2::int

-- name: search_customers
-- Returns customers whose name begins with $1, or who have the transaction $2 or sent the receipt $3 (nulls: none), at
-- most $4.
SELECT a.bundle_id, c.name, c.created_at
FROM ledger.customer c JOIN ledger.app a USING (app_id)
WHERE c.customer_id IN (
    (SELECT p.customer_id FROM ledger.app
     CROSS JOIN LATERAL (
         SELECT c.customer_id FROM ledger.customer c
         WHERE c.app_id = app.app_id AND c.name LIKE $1::text ORDER BY c.name USING ~<~ LIMIT $4::int) p LIMIT $4::int)
    UNION
    (SELECT o.customer_id FROM ledger.subscription s JOIN ledger.ownership o USING (subscription_id)
     WHERE s.app_id = ANY (ARRAY(SELECT app_id FROM ledger.app)) AND s.environment IN ('Production', 'Sandbox')
       AND s.original_transaction_id = $2::text LIMIT $4::int)
    UNION
    (SELECT o.customer_id
     FROM ledger.transaction_alias t JOIN ledger.period USING (period_id) JOIN ledger.ownership o USING (subscription_id)
     WHERE t.transaction_id = $2::text LIMIT $4::int)
    UNION
    (SELECT o.customer_id FROM ledger.purchase p JOIN ledger.ownership o USING (purchase_id)
     WHERE p.app_id = ANY (ARRAY(SELECT app_id FROM ledger.app)) AND p.environment IN ('Production', 'Sandbox')
       AND p.original_transaction_id = $2::text LIMIT $4::int)
    UNION
    (SELECT u.customer_id FROM ledger.upload u WHERE u.receipt_id = $3::bigint LIMIT $4::int))
ORDER BY a.bundle_id, c.name LIMIT $4::int

-- name: read_timelines
-- Returns the timelines of the subscriptions that customer $2 of app $1 owns, newest span first, at most $3.
SELECT s.original_transaction_id, t.product_id, t.state::text AS state, t.reason::text AS reason, t.entitled, t.flags,
       NULLIF(lower(t.valid), '-infinity') AS since, NULLIF(upper(t.valid), 'infinity') AS until
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
JOIN ledger.ownership o ON o.customer_id = c.customer_id AND upper_inf(o.known) AND upper_inf(o.valid)
JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
JOIN ledger.subscription_span t ON t.subscription_id = s.subscription_id AND upper_inf(t.known)
WHERE a.bundle_id = $1::text AND c.name = $2::text
ORDER BY lower(t.valid) DESC, s.original_transaction_id COLLATE "C" LIMIT $3::int

-- name: read_customer_events
-- Returns the events of everything that customer $2 of app $1 owns, newest first, at most $3.
SELECT e.kind::text AS kind, COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       e.product_id, e.occurred_at, e.recorded_at
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
JOIN ledger.ownership o ON o.customer_id = c.customer_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
LEFT JOIN ledger.purchase p ON p.purchase_id = o.purchase_id
CROSS JOIN LATERAL (
    SELECT * FROM ledger.event x WHERE x.subscription_id = o.subscription_id
    UNION ALL
    SELECT * FROM ledger.event x WHERE x.purchase_id = o.purchase_id) e
WHERE a.bundle_id = $1::text AND c.name = $2::text
ORDER BY e.recorded_at DESC, e.event_id DESC LIMIT $3::int

-- name: read_answers
-- Returns Apple's answers about receipt $1, newest first, at most $2: one row for each series of equal answers.
SELECT o.observation_id, o.outcome::text AS outcome, o.status, o.reason, o.environment::text AS environment,
       o.first_as_of, o.last_as_of, o.recorded_at
FROM ledger.observation o WHERE o.receipt_id = $1::bigint
ORDER BY o.observation_id DESC LIMIT $2::int

-- name: read_schedule
-- Returns the schedule of receipt $1; no row means that it is no longer checked.
SELECT s.lane::text AS lane, s.due_at, s.scheduled_for, s.attempts, s.crashes,
       s.leased_by IS NOT NULL AND s.due_at > now() AS in_flight,
       CASE WHEN b.paused_until > now() THEN b.paused_because ELSE r.paused_because END AS paused_because
FROM ledger.poll_schedule s LEFT JOIN ledger.app_budget b USING (app_id) LEFT JOIN perennial.receipt_now r USING (receipt_id)
WHERE s.receipt_id = $1::bigint

-- name: was_asked_lately
-- Returns whether Apple was asked about receipt $1 within $2 seconds.
SELECT COALESCE(GREATEST(r.asked_at, s.confirmed_at) > now() - make_interval(secs => $2::float8), false) AS asked
FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE r.receipt_id = $1::bigint

-- name: list_incidents
-- Returns incidents, running ones first, then the newest, at most $1.
SELECT a.bundle_id, i.kind, i.opened_at, i.closed_at, i.asked, i.refused, i.last_reason
FROM ledger.incident i JOIN ledger.app a USING (app_id)
ORDER BY i.closed_at IS NOT NULL, i.incident_id DESC LIMIT $1::int

-- name: overview_days
-- Overview: returns the summaries of the last $3 whole UTC days and of today so far, of app $1 (null: every app) in
-- environment $2. Levels are those at each day's end, today's those of now. Further rows have the same for each
-- currency's monthly revenue.
WITH app AS (
    SELECT app_id FROM ledger.app WHERE $1::text IS NULL OR bundle_id = $1::text
), today AS (
    SELECT (now() AT TIME ZONE 'UTC')::date AS day, date_trunc('day', now(), 'UTC') AS begins
), access_edge AS (
    -- Who was not summarised yet is missing in the sums of the days before too.
    SELECT t.subscription_id, t.flags, 1 AS change
    FROM ledger.subscription_span t JOIN ledger.summarised USING (subscription_id)
    WHERE upper_inf(t.known) AND (t.entitled OR t.allowed_until IS NOT NULL)
      AND lower(t.valid) >= (SELECT begins FROM today) AND lower(t.valid) <= now()
    UNION ALL
    SELECT t.subscription_id, t.flags, -1
    FROM ledger.subscription_span t JOIN ledger.summarised USING (subscription_id)
    WHERE upper_inf(t.known) AND (t.entitled OR t.allowed_until IS NOT NULL)
      AND LEAST(t.allowed_until, upper(t.valid)) >= (SELECT begins FROM today)
      AND LEAST(t.allowed_until, upper(t.valid)) <= now()
), paying_edge AS (
    SELECT p.subscription_id, p.currency, p.monthly_milliunits, 1 AS change FROM ledger.summary_paying p
    WHERE p.paying_from >= (SELECT begins FROM today) AND p.paying_from <= now()
    UNION ALL
    SELECT p.subscription_id, p.currency, p.monthly_milliunits, -1 FROM ledger.summary_paying p
    WHERE p.paying_until >= (SELECT begins FROM today) AND p.paying_until <= now()
), paying_moved AS (
    SELECT e.subscription_id, sum(e.change) AS change,
           -- LIMIT keeps this a lookup of each subscription; the planner would read all rows for EXISTS.
           (SELECT true FROM ledger.summary_paying p
            WHERE p.subscription_id = e.subscription_id AND p.paying_from < (SELECT begins FROM today)
            LIMIT 1) IS NOT NULL AS paid_before
    FROM paying_edge e GROUP BY e.subscription_id
), moved AS (
    SELECT d.app_id, d.environment, d.day, d.currency, d.active, d.trial, d.paying, d.monthly_milliunits, d.began,
           d.returned, d.churned, d.trials_started, d.trials_converted, d.trials_lost
    FROM ledger.summary_day d WHERE d.day < (SELECT day FROM today)
    UNION ALL
    -- Of today the sums already have the ends that are to come. They fit for trials, which count only what happened.
    SELECT d.app_id, d.environment, d.day, '', 0, 0, 0, 0, 0, 0, 0, d.trials_started, d.trials_converted, d.trials_lost
    FROM ledger.summary_day d WHERE d.day = (SELECT day FROM today)
    UNION ALL
    SELECT s.app_id, s.environment, (SELECT day FROM today), '', e.change,
           CASE WHEN 'trial' = ANY (e.flags) AND NOT e.flags && '{family_shared,assigned}' THEN e.change ELSE 0 END,
           0, 0, 0, 0, 0, 0, 0, 0
    FROM access_edge e JOIN ledger.subscription s USING (subscription_id)
    UNION ALL
    SELECT s.app_id, s.environment, (SELECT day FROM today), '', 0, 0, m.change, 0,
           (m.change > 0 AND NOT m.paid_before)::int, (m.change > 0 AND m.paid_before)::int, (m.change < 0)::int, 0, 0, 0
    FROM paying_moved m JOIN ledger.subscription s USING (subscription_id)
    UNION ALL
    SELECT s.app_id, s.environment, (SELECT day FROM today), e.currency, 0, 0, 0, e.change * e.monthly_milliunits, 0, 0, 0,
           0, 0, 0
    FROM paying_edge e JOIN ledger.subscription s USING (subscription_id) WHERE e.currency IS NOT NULL
), reported AS (
    SELECT m.day, m.currency, sum(m.active) AS active, sum(m.trial) AS trial, sum(m.paying) AS paying,
           sum(m.monthly_milliunits) AS monthly, sum(m.began) AS began, sum(m.returned) AS returned,
           sum(m.churned) AS churned, sum(m.trials_started) AS trials_started,
           sum(m.trials_converted) AS trials_converted, sum(m.trials_lost) AS trials_lost
    FROM moved m JOIN app USING (app_id)
    WHERE m.environment = $2::text::ledger.environment
    GROUP BY m.day, m.currency
), days AS (
    SELECT (SELECT day FROM today) - back AS day FROM generate_series(0, $3::int) back
), whole AS (
    SELECT NULL::text AS currency, d.day,
           (SELECT COALESCE(sum(active), 0) FROM reported WHERE day < (SELECT min(day) FROM days))
               + sum(COALESCE(sum(t.active), 0)) OVER sofar AS active,
           (SELECT COALESCE(sum(trial), 0) FROM reported WHERE day < (SELECT min(day) FROM days))
               + sum(COALESCE(sum(t.trial), 0)) OVER sofar AS trial,
           (SELECT COALESCE(sum(paying), 0) FROM reported WHERE day < (SELECT min(day) FROM days))
               + sum(COALESCE(sum(t.paying), 0)) OVER sofar AS paying,
           0::numeric AS monthly, COALESCE(sum(t.began), 0) AS began, COALESCE(sum(t.returned), 0) AS returned,
           COALESCE(sum(t.churned), 0) AS churned, COALESCE(sum(t.trials_started), 0) AS trials_started,
           COALESCE(sum(t.trials_converted), 0) AS trials_converted, COALESCE(sum(t.trials_lost), 0) AS trials_lost
    FROM days d LEFT JOIN reported t USING (day)
    GROUP BY d.day
    WINDOW sofar AS (ORDER BY d.day)
), money AS (
    SELECT c.currency, d.day,
           c.before + sum(COALESCE(t.monthly, 0)) OVER (PARTITION BY c.currency ORDER BY d.day) AS monthly
    FROM days d
    CROSS JOIN (
        SELECT currency, COALESCE(sum(monthly) FILTER (WHERE day < (SELECT min(day) FROM days)), 0) AS before
        FROM reported WHERE currency <> '' GROUP BY currency ORDER BY max(abs(monthly)) DESC LIMIT 8) c
    LEFT JOIN reported t ON t.day = d.day AND t.currency = c.currency
)
SELECT currency, day::text AS day, active::bigint AS active, trial::bigint AS trial, paying::bigint AS paying,
       monthly::bigint AS monthly, began::bigint AS began, returned::bigint AS returned, churned::bigint AS churned,
       trials_started::bigint AS trials_started, trials_converted::bigint AS trials_converted,
       trials_lost::bigint AS trials_lost
FROM whole
UNION ALL
SELECT currency, day::text, 0, 0, 0, monthly::bigint, 0, 0, 0, 0, 0, 0 FROM money
ORDER BY currency NULLS FIRST, day

-- name: overview_checks
-- Overview: counts Apple's answers in each of the last 48 hours, of app $1 (null: every app).
SELECT to_char(h.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:00') AS hour, COALESCE(sum(c.verified), 0)::bigint AS verified,
       COALESCE(sum(c.rejected), 0)::bigint AS rejected, COALESCE(sum(c.failed), 0)::bigint AS failed
FROM generate_series(date_trunc('hour', now(), 'UTC') - interval '47 hours', date_trunc('hour', now(), 'UTC'),
                     interval '1 hour') AS h(hour)
LEFT JOIN (
    SELECT k.* FROM ledger.check_hour k JOIN ledger.app a USING (app_id)
    WHERE $1::text IS NULL OR a.bundle_id = $1::text) c ON c.hour = h.hour
GROUP BY h.hour ORDER BY h.hour

-- name: overview_staleness
-- Overview: counts receipts of app $1 (null: every app) that are more than 5 minutes overdue, up to $2; also the oldest
-- of them, live workers, remaining violations, what is known by notification only and no worker can take up, and the progress
-- of the summaries.
SELECT (SELECT count(*) FROM (
            SELECT FROM ledger.app a
            CROSS JOIN LATERAL (
                SELECT FROM ledger.poll_schedule s
                WHERE s.app_id = a.app_id AND s.lane IN ('new', 'expiring', 'retry', 'sweep') AND s.due_at < now() - interval '5 minutes'
                LIMIT $2::int) late
            WHERE $1::text IS NULL OR a.bundle_id = $1::text LIMIT $2::int) overdue) AS overdue,
       (SELECT min(first.due_at)
        FROM ledger.app a
        CROSS JOIN unnest('{new,expiring,retry,sweep}'::ledger.lane[]) AS of (lane)
        CROSS JOIN LATERAL (
            SELECT s.due_at FROM ledger.poll_schedule s WHERE s.app_id = a.app_id AND s.lane = of.lane
            ORDER BY s.due_at LIMIT 1) first
        WHERE ($1::text IS NULL OR a.bundle_id = $1::text) AND first.due_at < now() - interval '5 minutes') AS oldest_due_at,
       (SELECT count(*) FROM ledger.worker w
        WHERE w.stopped_at IS NULL AND w.heartbeat_at > now() - interval '2 minutes') AS workers,
       (SELECT count(*) FROM ledger.incident WHERE closed_at IS NULL) AS incidents,
       (SELECT COALESCE(sum(i.violations - i.repaired), 0)::bigint FROM ledger.invariant i) AS violations,
       (SELECT count(*) FROM ledger.unasked u JOIN ledger.app a USING (app_id)
        WHERE a.removed_at IS NULL AND ($1::text IS NULL OR a.bundle_id = $1::text)
          AND NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id)) AS unasked,
       p.rounds > 0 AS is_complete, p.summarised_at,
       (SELECT COALESCE(max(f.position), 0) FROM ledger.event_feed f) - p.position AS events_behind
FROM ledger.summary_progress p

-- name: read_retention
-- Retention: returns for the subscriptions of app $1 (null: every app) in environment $2 that began to pay in each of the
-- last $3 UTC months how many reached each monthly anniversary with a day's grace, and how many paid then. Month 0 has all of
-- them; later ones come where one reached them. From the rows that workers keep (ledger.summary_paying).
WITH paying AS MATERIALIZED (
    SELECT p.subscription_id, p.paying_from, p.paying_until,
           min(p.paying_from) OVER (PARTITION BY p.subscription_id) AS began_at
    FROM ledger.summary_paying p
    JOIN ledger.subscription s USING (subscription_id)
    WHERE s.environment = $2::text::ledger.environment
      AND ($1::text IS NULL OR s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text))
      AND p.paying_from <= now()
), cohort AS MATERIALIZED (
    SELECT p.*, date_trunc('month', p.began_at AT TIME ZONE 'UTC') AS since
    FROM paying p
    WHERE p.began_at >= (date_trunc('month', now() AT TIME ZONE 'UTC') - ($3::int - 1) * interval '1 month') AT TIME ZONE 'UTC'
)
SELECT c.since::date::text AS since, n.month, count(DISTINCT c.subscription_id) AS reached,
       count(DISTINCT c.subscription_id) FILTER (WHERE n.month = 0 OR c.paying_from <= a.at AND a.at < c.paying_until) AS retained
FROM cohort c
CROSS JOIN generate_series(0, $3::int) n(month)
CROSS JOIN LATERAL (
    SELECT (c.began_at AT TIME ZONE 'UTC' + n.month * interval '1 month' + interval '1 day') AT TIME ZONE 'UTC' AS at) a
WHERE n.month = 0 OR a.at <= now()
GROUP BY c.since, n.month
ORDER BY c.since, n.month

-- name: read_cohorts
-- Cohorts: returns for the subscriptions of app $1 (null: every app) in environment $2 that were first charged in each of the
-- last $3 UTC months how many they are, how many pay now, and their revenue so far by currency, less refunds. From the rows
-- that workers keep (ledger.summary_revenue and ledger.summary_paying).
WITH charged AS MATERIALIZED (
    SELECT r.subscription_id, r.currency, r.amount_milliunits,
           date_trunc('month', min(r.occurred_at) OVER (PARTITION BY r.subscription_id) AT TIME ZONE 'UTC') AS since
    FROM ledger.summary_revenue r
    JOIN ledger.subscription s USING (subscription_id)
    WHERE s.environment = $2::text::ledger.environment AND r.currency IS NOT NULL AND r.occurred_at <= now()
      AND ($1::text IS NULL OR s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text))
)
SELECT c.since::date::text AS since, c.currency, count(DISTINCT c.subscription_id) AS subscriptions,
       count(DISTINCT c.subscription_id) FILTER (WHERE EXISTS (
           SELECT FROM ledger.summary_paying p
           WHERE p.subscription_id = c.subscription_id AND p.paying_from <= now() AND now() < p.paying_until)) AS paying,
       sum(c.amount_milliunits)::bigint AS amount
FROM charged c
WHERE c.since >= date_trunc('month', now() AT TIME ZONE 'UTC') - ($3::int - 1) * interval '1 month'
GROUP BY c.since, c.currency
ORDER BY c.since DESC, amount DESC, c.currency

-- name: open_session
-- Stores a new session of the admin page (digest $1, key $2, for $3 seconds) and deletes ended ones.
WITH ended AS (
    DELETE FROM ledger.admin_session WHERE expires_at <= now()
)
INSERT INTO ledger.admin_session (digest, key_id, expires_at)
VALUES ($1::bytea, $2::int, now() + make_interval(secs => $3::float8))
RETURNING key_id

-- name: find_session
-- Returns the running session with digest $1, if its key still belongs to an administrator of every app.
SELECT s.key_id
FROM ledger.admin_session s JOIN ledger.api_key k USING (key_id)
WHERE s.digest = $1::bytea AND s.expires_at > now() AND k.revoked_at IS NULL AND k.scope = 'admin' AND k.app_id IS NULL

-- name: close_session
-- Ends the session with digest $1.
DELETE FROM ledger.admin_session WHERE digest = $1::bytea
RETURNING key_id
