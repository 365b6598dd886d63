-- Adds refunds of app $1 to the days that begin at $2: reported ones $3, missed ones $4.
INSERT INTO ledger.sweep_proof AS p (app_id, began_at, reported, missed)
SELECT $1::int, n.began_at, n.reported, n.missed
FROM unnest($2::timestamptz[], $3::bigint[], $4::bigint[]) AS n(began_at, reported, missed)
ON CONFLICT (app_id, began_at) DO UPDATE
SET reported = p.reported + EXCLUDED.reported, missed = p.missed + EXCLUDED.missed
