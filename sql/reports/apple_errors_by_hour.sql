-- Apple's refusals and failures by hour, status and reason
-- Variables: from, until, bundle_id.
-- Equal answers about a receipt are kept as one, from the first to the last: began counts the receipts that first got
-- this answer in the hour, receipts all whose stretch of such answers reaches into it. outcome: rejected, or
-- indeterminate when there was no answer to be had (status empty: HTTP or network). environment is empty where the
-- answer did not say. Hours are UTC; from defaults to the beginning of yesterday.
\if :{?from} \else \set from yesterday \endif
\if :{?until} \else \set until infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
SELECT hour, bundle_id, environment, outcome, status, reason,
       count(DISTINCT receipt_id) FILTER (WHERE hour = date_trunc('hour', first_as_of, 'UTC')) AS began,
       count(DISTINCT receipt_id) AS receipts
FROM perennial.answer_log
CROSS JOIN LATERAL generate_series(
    date_trunc('hour', GREATEST(first_as_of, :'from'::timestamptz), 'UTC'),
    LEAST(last_as_of, :'until'::timestamptz - interval '1 microsecond'), interval '1 hour') hour
WHERE outcome IN ('rejected', 'indeterminate') AND (:'bundle_id' = '' OR bundle_id = :'bundle_id')
  AND first_as_of < :'until'::timestamptz AND last_as_of >= :'from'::timestamptz
GROUP BY hour, bundle_id, environment, outcome, status, reason
ORDER BY hour, bundle_id, environment, outcome, status, reason;
