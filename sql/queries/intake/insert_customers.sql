-- Inserts customers that are not known yet ($1 apps, $2 names; each once, in order of app and name), and returns those
-- it inserted. Intake, manual grants, assignments and merges run it.
INSERT INTO ledger.customer (app_id, name)
SELECT unnest($1::int[]), unnest($2::text[])
ON CONFLICT DO NOTHING
RETURNING customer_id, app_id, name
