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
