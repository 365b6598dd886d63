-- Intake, step 4: makes customers that are not known yet ($1 apps, $2 names).
INSERT INTO ledger.customer (app_id, name)
SELECT DISTINCT n.app_id, n.name COLLATE "C" FROM unnest($1::int[], $2::text[]) AS n(app_id, name)
ORDER BY 1, 2
ON CONFLICT DO NOTHING
