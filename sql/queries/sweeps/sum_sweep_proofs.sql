-- Returns what counts of the refunds of app $1: reported ones of days that begin before $2, and all missed ones, neither
-- of days that begin before $3. Forgets the latter.
WITH old AS (
    DELETE FROM ledger.sweep_proof WHERE app_id = $1::int AND began_at < $3::timestamptz
)
SELECT COALESCE(sum(p.reported) FILTER (WHERE p.began_at < $2::timestamptz), 0)::bigint AS reported,
       COALESCE(sum(p.missed), 0)::bigint AS missed
FROM ledger.sweep_proof p WHERE p.app_id = $1::int AND p.began_at >= $3::timestamptz
