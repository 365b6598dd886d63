-- Confirmation: locks the schedule rows whose lease and last answer are still those of the claim, before it locks
-- anything else; $1 worker, $2 receipts, $3 tokens, $4 fingerprints.
SELECT s.receipt_id, s.purchases, s.purchase_versions
FROM ledger.poll_schedule s
JOIN unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS n(receipt_id, lease_token, fingerprint) USING (receipt_id)
WHERE s.leased_by = $1::int AND s.lease_token = n.lease_token AND s.fingerprint = n.fingerprint
ORDER BY s.receipt_id
FOR NO KEY UPDATE OF s
