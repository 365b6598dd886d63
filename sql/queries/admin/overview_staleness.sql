-- Overview: counts receipts of app $1 (null: every app) that are more than 5 minutes overdue, up to $2; also the oldest
-- of them, live workers, remaining violations, what is known by notification only and no worker can take up, and the progress
-- of the summaries.
SELECT (SELECT count(*) FROM (
            SELECT FROM ledger.app a
            CROSS JOIN LATERAL (
                SELECT FROM ledger.poll_schedule s
                WHERE s.app_id = a.app_id AND s.lane IN ('new', 'expiring', 'retry', 'sweep') AND s.due_at < now() - interval '5 minutes'
                LIMIT $2::int) late
            WHERE $1::text IS NULL OR a.bundle_id = $1::text LIMIT $2::int) overdue) AS overdue,
       (SELECT min(first.due_at)
        FROM ledger.app a
        CROSS JOIN unnest('{new,expiring,retry,sweep}'::ledger.lane[]) AS of (lane)
        CROSS JOIN LATERAL (
            SELECT s.due_at FROM ledger.poll_schedule s WHERE s.app_id = a.app_id AND s.lane = of.lane
            ORDER BY s.due_at LIMIT 1) first
        WHERE ($1::text IS NULL OR a.bundle_id = $1::text) AND first.due_at < now() - interval '5 minutes') AS oldest_due_at,
       (SELECT count(*) FROM ledger.worker w
        WHERE w.stopped_at IS NULL AND w.heartbeat_at > now() - interval '2 minutes') AS workers,
       (SELECT count(*) FROM ledger.incident WHERE closed_at IS NULL) AS incidents,
       (SELECT COALESCE(sum(i.violations - i.repaired), 0)::bigint FROM ledger.invariant i) AS violations,
       (SELECT count(DISTINCT (n.app_id, n.environment, n.original_transaction_id))
        FROM ledger.notification n JOIN ledger.app a USING (app_id)
        WHERE n.effect = 'unpolled' AND a.removed_at IS NULL AND ($1::text IS NULL OR a.bundle_id = $1::text)
          AND NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id)) AS unpolled,
       p.rounds > 0 AS is_complete, p.summarised_at,
       (SELECT COALESCE(max(f.position), 0) FROM ledger.event_feed f) - p.position AS events_behind
FROM ledger.summary_progress p
