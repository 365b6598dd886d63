-- Intake: inserts receipts that are not known yet ($1 apps, $2 digests, $3 bytes; each once, in order of app and
-- digest, so that writers do not deadlock), and returns those it inserted.
INSERT INTO ledger.receipt (app_id, digest, data)
SELECT unnest($1::int[]), unnest($2::bytea[]), unnest($3::bytea[])
ON CONFLICT DO NOTHING
RETURNING receipt_id, app_id, digest
