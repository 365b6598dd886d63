-- Events by UTC day and kind
-- Variables: from, until, environment.
-- An event counts on the day it occurred, by Apple's clock, whenever it was recorded; subscriptions counts each once a day.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?environment} \else \set environment Production \endif
SELECT (occurred_at AT TIME ZONE 'UTC')::date AS day, bundle_id, kind, count(*) AS events,
       count(DISTINCT original_transaction_id) AS subscriptions
FROM perennial.event_log
WHERE environment = :'environment' AND occurred_at >= :'from'::timestamptz AND occurred_at < :'until'::timestamptz
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
