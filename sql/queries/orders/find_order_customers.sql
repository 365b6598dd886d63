-- Settlement: returns the customers whom account tokens ($2 of apps $1, in lower case) name, through merges: the customer
-- of the order whose token it is, else the one whose id it is. Tokens of erased customers name none (is_erased).
SELECT t.app_id, t.token, head.customer_id, head.name, named.is_ordered, false AS is_erased
FROM unnest($1::int[], $2::text[]) AS t(app_id, token)
CROSS JOIN LATERAL (
    SELECT o.customer_id, true AS is_ordered, NULL::text AS name FROM ledger.purchase_order o
    WHERE o.app_account_token = ledger.account_token(t.token) AND o.app_id = t.app_id
    UNION ALL
    SELECT c.customer_id, false, c.name FROM ledger.customer c
    WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token))
    ORDER BY is_ordered DESC, name LIMIT 1) named
CROSS JOIN LATERAL (SELECT c.merged_into FROM ledger.customer c WHERE c.customer_id = named.customer_id OFFSET 0) c
CROSS JOIN LATERAL (
    SELECT h.customer_id, h.name FROM ledger.customer h
    WHERE h.customer_id = COALESCE(c.merged_into, named.customer_id) OFFSET 0) head
UNION ALL
SELECT t.app_id, t.token, NULL, NULL, NULL, true
FROM unnest($1::int[], $2::text[]) AS t(app_id, token)
JOIN ledger.erased_token e ON e.app_id = t.app_id AND e.digest = sha256(convert_to(t.token, 'UTF8'))
WHERE NOT EXISTS (SELECT FROM ledger.customer c WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token)))
