-- Records who stored receipts: API key $1 or operating-system user $2, action $3; apps $4, customers $5, receipts $6.
INSERT INTO ledger.audit (key_id, os_user, action, app_id, customer_id, receipt_id)
SELECT $1::int, $2::text, $3::text, c.app_id, c.customer_id, n.receipt_id
FROM unnest($4::int[], $5::text[], $6::bigint[]) WITH ORDINALITY AS n(app_id, name, receipt_id, place)
JOIN ledger.customer c USING (app_id, name)
ORDER BY n.place
