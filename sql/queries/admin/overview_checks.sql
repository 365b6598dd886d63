-- Overview: counts Apple's answers in each of the last 48 hours, of app $1 (null: every app).
SELECT to_char(h.hour AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:00') AS hour, COALESCE(sum(c.verified), 0)::bigint AS verified,
       COALESCE(sum(c.rejected), 0)::bigint AS rejected, COALESCE(sum(c.failed), 0)::bigint AS failed
FROM generate_series(date_trunc('hour', now(), 'UTC') - interval '47 hours', date_trunc('hour', now(), 'UTC'),
                     interval '1 hour') AS h(hour)
LEFT JOIN (
    SELECT k.* FROM ledger.check_hour k JOIN ledger.app a USING (app_id)
    WHERE $1::text IS NULL OR a.bundle_id = $1::text) c ON c.hour = h.hour
GROUP BY h.hour ORDER BY h.hour
