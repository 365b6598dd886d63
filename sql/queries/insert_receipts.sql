-- Intake, step 1: keeps receipts that are not known yet ($1 apps, $2 digests, $3 bytes), and tells which those are.
INSERT INTO ledger.receipt (app_id, digest, data)
SELECT DISTINCT ON (n.app_id, n.digest) n.app_id, n.digest, n.data
FROM unnest($1::int[], $2::bytea[], $3::bytea[]) AS n(app_id, digest, data)
ORDER BY n.app_id, n.digest
ON CONFLICT DO NOTHING
RETURNING receipt_id
