-- Events by UTC day and kind: psql -f sql/reports/changes_by_day.sql [-v from=2026-01-01] [-v until=2026-02-01] [-v environment=Sandbox]
\if :{?from}
\else
\set from -infinity
\endif
\if :{?until}
\else
\set until infinity
\endif
\if :{?environment}
\else
\set environment Production
\endif
SELECT (occurred_at AT TIME ZONE 'UTC')::date AS day, bundle_id, kind, count(*) AS events,
       count(DISTINCT original_transaction_id) AS subscriptions
FROM perennial.event_log
WHERE environment = :'environment' AND occurred_at >= :'from'::timestamptz AND occurred_at < :'until'::timestamptz
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
