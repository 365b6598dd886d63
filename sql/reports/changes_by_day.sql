-- Events by UTC day and kind
-- Variables: from, until, environment.
-- An event counts on the day it occurred, by Apple's clock, whenever it was recorded. subscriptions counts each
-- subscription once a day. is_complete: the day is over and lies between `from` and `until`. A cut day counts only the
-- events in between.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?environment} \else \set environment Production \endif
SELECT (occurred_at AT TIME ZONE 'UTC')::date AS day, bundle_id, kind, count(*) AS events,
       count(DISTINCT original_transaction_id) AS subscriptions,
       perennial.is_complete(
           (occurred_at AT TIME ZONE 'UTC')::date, 'day', 'UTC', :'from', :'until', 'infinity') AS is_complete
FROM perennial.event_log
WHERE environment = perennial.known_environment(:'environment')
  AND occurred_at >= perennial.instant(:'from', 'UTC') AND occurred_at < perennial.instant(:'until', 'UTC')
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
