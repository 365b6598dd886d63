-- Intake: inserts receipts that are not known yet ($1 apps, $2 digests, $3 bytes, $4 forms, $5 transaction ids; each once,
-- in order of app and digest, so that writers do not deadlock), and returns those it inserted.
INSERT INTO ledger.receipt (app_id, digest, data, form, transaction_id)
SELECT unnest($1::int[]), unnest($2::bytea[]), unnest($3::bytea[]), unnest($4::text[])::ledger.receipt_form,
       unnest($5::text[])
ON CONFLICT DO NOTHING
RETURNING receipt_id, app_id, digest
