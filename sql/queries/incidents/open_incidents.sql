-- Opens an incident for each app with too many canaries (once-verified receipts) refused in the last $1 seconds: at
-- least $2 receipts, and more than $3 percent of the answers about such receipts.
WITH refused AS (
    SELECT f.app_id, count(*) AS receipts, min(f.refused_at) AS since
    FROM ledger.refusal f
    WHERE f.once_verified AND f.is_canary AND f.refused_at > now() - make_interval(secs => $1::float8)
    GROUP BY f.app_id HAVING count(*) >= $2::int
)
INSERT INTO ledger.incident (app_id, kind, opened_at, recognised_at, asked, refused, last_reason)
SELECT r.app_id, 'refusals', LEAST(r.since, now()), now(), r.receipts + verified.answers, r.receipts, (
    SELECT f.reason FROM ledger.refusal f
    WHERE f.app_id = r.app_id AND f.once_verified AND f.is_canary ORDER BY f.refused_at DESC LIMIT 1)
FROM refused r
CROSS JOIN LATERAL (
    SELECT COALESCE(sum(v.answers), 0)::bigint AS answers FROM ledger.verified_minute v
    WHERE v.app_id = r.app_id AND v.minute >= date_trunc('minute', now() - make_interval(secs => $1::float8))) verified
WHERE r.receipts * 100 > (r.receipts + verified.answers) * $3::int
ON CONFLICT (app_id, kind) WHERE closed_at IS NULL DO NOTHING
