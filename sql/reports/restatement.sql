-- Changes of past figures between two instants of knowledge
-- Variables: known_before, known_after, from, until, bundle_id, environment, time_zone.
-- Compares active_subscriptions, mrr and revenue for the days that were over at known_before, as known then (default:
-- yesterday) and as known at known_after (default: now). Each row is a run of days on which a subscription or purchase
-- counts differently. Every figure of those days differs by change (subscriptions; for revenue: charges, refunds and
-- prorations) and by amount (units of the currency; for mrr, a month's). The sum of all rows over a day is the whole
-- difference of the figure: there is no other change. because names the events recorded in between, or 'price' if the
-- catalog, an upload or Apple's statement about an offer changed only the amount. learnt_at is when the last of those
-- events was recorded.
--     psql -v known_before=2026-02-01 -f sql/reports/restatement.sql
\if :{?known_before} \else \set known_before yesterday \endif
\if :{?known_after} \else \set known_after infinity \endif
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
WITH moved AS (
    SELECT figure, bundle_id, environment, stream_kind, stream_id, original_transaction_id, product_id, currency, day,
           sum(sign * edge) AS change, sum(sign * edge * amount) AS amount
    FROM perennial.restated_as_known(:'known_before'::timestamptz, :'known_after'::timestamptz, :'time_zone')
    CROSS JOIN LATERAL (VALUES
        (GREATEST(first_day, perennial.day_of(:'from', :'time_zone')), 1),
        (LEAST(end_day, perennial.day_of(:'until', :'time_zone'),
               (LEAST(:'known_before'::timestamptz, now()) AT TIME ZONE :'time_zone')::date), -1)) AS at (day, edge)
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
      AND GREATEST(first_day, perennial.day_of(:'from', :'time_zone'))
          < LEAST(end_day, perennial.day_of(:'until', :'time_zone'),
                  (LEAST(:'known_before'::timestamptz, now()) AT TIME ZONE :'time_zone')::date)
    GROUP BY figure, bundle_id, environment, stream_kind, stream_id, original_transaction_id, product_id, currency, day
    HAVING sum(sign * edge) <> 0 OR sum(sign * edge * amount) <> 0
), stretch AS (
    SELECT figure, bundle_id, environment, stream_kind, original_transaction_id, product_id, currency, day AS first_day,
           lead(day) OVER stream - 1 AS last_day, sum(change) OVER stream AS change,
           sum(amount) OVER stream AS amount
    FROM moved
    WINDOW stream AS (
        PARTITION BY figure, bundle_id, environment, stream_kind, stream_id, product_id, currency ORDER BY day)
), event AS (
    SELECT bundle_id, environment, original_transaction_id,
           string_agg(DISTINCT kind, ', ' ORDER BY kind) AS because, max(recorded_at) AS learnt_at
    FROM perennial.event_log
    WHERE recorded_at > :'known_before'::timestamptz AND recorded_at <= :'known_after'::timestamptz
    GROUP BY bundle_id, environment, original_transaction_id
)
SELECT figure, first_day, last_day, bundle_id, original_transaction_id, product_id, currency, change,
       round(amount / 1000, 3) AS amount, COALESCE(because, 'price') AS because, learnt_at
FROM stretch LEFT JOIN event USING (bundle_id, environment, original_transaction_id)
WHERE change <> 0 OR amount <> 0
ORDER BY figure, first_day, bundle_id, original_transaction_id, product_id, currency;
