-- Adds a process's answers to the current hour (apps $1, verified $2, rejected $3, failed $4) and deletes hours older
-- than 40 days.
WITH old AS (
    DELETE FROM ledger.check_hour WHERE hour < now() - interval '40 days'
)
INSERT INTO ledger.check_hour AS h (app_id, hour, verified, rejected, failed)
SELECT n.app_id, date_trunc('hour', now(), 'UTC'), n.verified, n.rejected, n.failed
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n(app_id, verified, rejected, failed)
ORDER BY n.app_id
ON CONFLICT (app_id, hour) DO UPDATE
SET verified = h.verified + EXCLUDED.verified, rejected = h.rejected + EXCLUDED.rejected,
    failed = h.failed + EXCLUDED.failed
