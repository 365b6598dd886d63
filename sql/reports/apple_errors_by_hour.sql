-- Apple's refusals and failures by hour, status and reason
-- Variables: from, until, bundle_id.
-- Equal answers about a receipt are kept as one, from the first to the last: began counts the receipts that first got
-- this answer in the hour, receipts all whose stretch of such answers reaches into it. outcome: rejected, or
-- indeterminate when there was no answer to be had (status empty: HTTP or network). environment is empty where the
-- answer did not say. Hours are UTC; from defaults to the beginning of yesterday.
-- is_complete: the hour is over and lies from `from` until `until`; of an hour that is cut only the answers in between.
\if :{?from} \else \set from yesterday \endif
\if :{?until} \else \set until infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
SELECT hour, bundle_id, environment, outcome, status, reason,
       count(DISTINCT receipt_id) FILTER (
           WHERE hour = date_trunc('hour', first_as_of, 'UTC') AND first_as_of >= perennial.instant(:'from', 'UTC')) AS began,
       count(DISTINCT receipt_id) AS receipts,
       hour >= perennial.instant(:'from', 'UTC')
           AND hour + interval '1 hour' <= LEAST(perennial.instant(:'until', 'UTC'), now()) AS is_complete
FROM perennial.answer_log
CROSS JOIN LATERAL generate_series(
    date_trunc('hour', GREATEST(first_as_of, perennial.instant(:'from', 'UTC')), 'UTC'),
    LEAST(last_as_of, perennial.instant(:'until', 'UTC') - interval '1 microsecond'), interval '1 hour') hour
WHERE outcome IN ('rejected', 'indeterminate') AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
  AND first_as_of < perennial.instant(:'until', 'UTC') AND last_as_of >= perennial.instant(:'from', 'UTC')
GROUP BY hour, bundle_id, environment, outcome, status, reason
ORDER BY hour, bundle_id, environment, outcome, status, reason;
