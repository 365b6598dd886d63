-- Intake, step 2: the keys of receipts ($1 apps, $2 digests), in the order of the question.
SELECT r.receipt_id
FROM unnest($1::int[], $2::bytea[]) WITH ORDINALITY AS n(app_id, digest, place)
JOIN ledger.receipt r ON r.app_id = n.app_id AND r.digest = n.digest
ORDER BY n.place
