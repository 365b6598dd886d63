-- Upload: returns the seconds until receipt $1 may be asked about: until it may be taken from a process that leased it and
-- shows no sign of life, or until the next trial where Apple refuses the app's secret. With $2 its back-off counts too, of
-- which an hour at most. No row where nothing is in the way.
SELECT CEIL(GREATEST(1, EXTRACT(epoch FROM wait.until - now())))::bigint AS seconds
FROM ledger.poll_schedule s
LEFT JOIN ledger.worker w ON w.worker_id = s.leased_by
LEFT JOIN ledger.secret_trial t ON t.app_id = s.app_id AND (t.environment = 'Sandbox') = s.is_sandbox
    AND ledger.secret_pause(s.app_id, s.is_sandbox) IS NOT NULL
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN s.leased_by IS NOT NULL AND s.due_at > now() AND COALESCE(ledger.gone_at(w) <= now() + interval '10 seconds', true)
        THEN LEAST(s.due_at, CASE WHEN s.crashes = 0 THEN ledger.gone_at(w) END)
        WHEN s.leased_by IS NULL
        THEN GREATEST(CASE WHEN t.app_id IS NOT NULL THEN GREATEST(t.try_at, now() + interval '5 s') END,
                      CASE WHEN $2::boolean AND s.backs_off THEN LEAST(s.due_at, now() + interval '1 hour') END)
    END AS until) wait
WHERE s.receipt_id = $1::bigint AND wait.until IS NOT NULL
