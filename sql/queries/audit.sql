-- The record of who changed what.

-- name: insert_audit
-- Records an action: API key $1 or operating-system user $2, action $3, about app $4 (null: the receipt's), its
-- customer $5 and receipt $6, detail $7; $8 the customers a decision is about, empty when it is not a decision.
INSERT INTO ledger.audit (key_id, os_user, action, app_id, customer_id, receipt_id, detail, decided_about)
SELECT $1::int, $2::text, $3::text, COALESCE(a.app_id, r.app_id), c.customer_id, $6::bigint, $7::jsonb,
       NULLIF($8::bigint[], '{}')
FROM (VALUES ($4::text, $5::text)) given (bundle_id, customer)
LEFT JOIN ledger.app a ON a.bundle_id = given.bundle_id
LEFT JOIN ledger.receipt r ON r.receipt_id = $6::bigint
LEFT JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = given.customer
