-- Returns the customers who have account tokens ($2 of apps $1) as their names, through merges.
SELECT t.app_id, t.token AS app_account_token, head.customer_id, head.name
FROM unnest($1::int[], $2::text[]) AS t(app_id, token)
JOIN ledger.customer c ON c.app_id = t.app_id AND c.name IN (lower(t.token), upper(t.token))
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
