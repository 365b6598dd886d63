-- Work that is stuck or overdue
-- Variables: bundle_id, minutes.
-- One row for each receipt with a problem, with the first that fits: 'crashes workers' (its leases expired),
-- 'abandoned' (its lease is over and no worker took it), 'keeps failing' (five calls or more without an answer),
-- 'overdue' (for more than minutes (5); imported receipts, for which no customer waits, after a day). Further rows for
-- problems of the whole installation: 'no worker', and 'events wait' when committed events have had no position for
-- more than minutes. An empty list is good news only while a worker is alive; see stale_subscriptions for the affected
-- subscriptions.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?minutes} \else \set minutes 5 \endif
WITH receipt AS (
    SELECT CASE WHEN crashes > 0 THEN 'crashes workers'
                WHEN is_leased AND NOT is_in_flight THEN 'abandoned'
                WHEN attempts >= 5 THEN 'keeps failing'
                WHEN NOT is_leased AND due_at < now() - CASE lane
                    WHEN 'import' THEN interval '1 day' ELSE :'minutes'::int * interval '1 minute' END THEN 'overdue'
                END AS trouble, r.*
    FROM perennial.receipt_now r
    WHERE due_at IS NOT NULL AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
)
SELECT trouble, bundle_id, environment, receipt_id, lane, due_at AS since, attempts, crashes,
       COALESCE('paused: ' || paused_because, reason) AS reason
FROM receipt WHERE trouble IS NOT NULL
UNION ALL
SELECT 'events wait', NULL, NULL, NULL, NULL, unsequenced_since, NULL, NULL, unsequenced || ' events have no position'
FROM perennial.feed_now WHERE unsequenced_since < now() - :'minutes'::int * interval '1 minute'
UNION ALL
SELECT 'no worker', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'no worker was alive within two minutes'
WHERE NOT EXISTS (SELECT FROM perennial.worker_now)
ORDER BY trouble, since, receipt_id;
