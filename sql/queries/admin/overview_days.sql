-- Overview: returns the summaries of the last $3 whole UTC days, of app $1 (null: every app) in environment $2. Levels
-- are those at each day's end. Further rows have the same for each currency's monthly revenue.
WITH reported AS (
    SELECT d.day, d.currency, sum(d.active) AS active, sum(d.trial) AS trial, sum(d.paying) AS paying,
           sum(d.monthly_milliunits) AS monthly, sum(d.began) AS began, sum(d.returned) AS returned,
           sum(d.churned) AS churned, sum(d.trials_started) AS trials_started,
           sum(d.trials_converted) AS trials_converted, sum(d.trials_lost) AS trials_lost
    FROM ledger.summary_day d JOIN ledger.app a USING (app_id)
    WHERE ($1::text IS NULL OR a.bundle_id = $1::text) AND d.environment = $2::text::ledger.environment
      AND d.day < (now() AT TIME ZONE 'UTC')::date
    GROUP BY d.day, d.currency
), days AS (
    SELECT (now() AT TIME ZONE 'UTC')::date - back AS day FROM generate_series(1, $3::int) back
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
