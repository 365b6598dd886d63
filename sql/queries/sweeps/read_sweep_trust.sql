-- Returns what is judged of each app, with its last verified notification and the mean gap of the last $1 of them.
SELECT t.app_id, t.factor, t.since, t.all_swept_since, t.counted_until, t.recalled_to, t.recalled_factor, now() AS now,
       heard.last_at, heard.gap_ms
FROM ledger.sweep_trust t
CROSS JOIN LATERAL (
    SELECT max(n.received_at) AS last_at,
           CASE WHEN count(*) = $1::int THEN
               (extract(epoch FROM max(n.received_at) - min(n.received_at)) * 1000 / (count(*) - 1))::bigint END AS gap_ms
    FROM (
        SELECT v.received_at FROM ledger.notification v WHERE v.app_id = t.app_id AND v.signed_at IS NOT NULL
        ORDER BY v.received_at DESC LIMIT $1::int) n) heard
ORDER BY t.app_id
