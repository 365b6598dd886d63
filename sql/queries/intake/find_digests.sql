-- Intake: returns the keys of receipts that were already known ($1 apps, $2 digests).
SELECT r.receipt_id, r.app_id, r.digest
FROM unnest($1::int[], $2::bytea[]) AS n(app_id, digest)
JOIN ledger.receipt r ON r.app_id = n.app_id AND r.digest = n.digest
