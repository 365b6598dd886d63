-- Apple's refusals and failures by hour, status and reason
-- Variables: from, until, bundle_id.
-- Equal answers about a receipt are stored as one series, from the first to the last. began counts the receipts whose
-- series of this answer began in the hour; receipts counts all whose series reaches into it. outcome: rejected, or
-- indeterminate when no usable answer came (status empty: HTTP or network). environment is empty if the answer did not
-- state it. Hours are UTC; from defaults to the beginning of yesterday. is_complete: the hour is over and lies between
-- `from` and `until`. A cut hour counts only the answers in between.
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
