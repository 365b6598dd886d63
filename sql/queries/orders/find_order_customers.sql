-- Orders: returns the customers of the orders with these account tokens ($2 of apps $1), through merges.
SELECT o.app_id, o.app_account_token::text AS app_account_token, head.customer_id, head.name
FROM unnest($1::int[], $2::text[]) AS t(app_id, token)
JOIN ledger.purchase_order o ON o.app_account_token = t.token::uuid AND o.app_id = t.app_id
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
