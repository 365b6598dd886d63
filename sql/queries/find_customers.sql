-- Intake, step 5: the keys of customers that were known before ($1 apps, $2 names); of a name that is another customer's
-- now, that one's, and what they are called. Until the end nobody can merge or erase them.
SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, c.app_id, c.name,
       COALESCE((SELECT h.name FROM ledger.customer h WHERE h.customer_id = c.merged_into), c.name) AS called
FROM unnest($1::int[], $2::text[]) AS n(app_id, name)
JOIN ledger.customer c ON c.app_id = n.app_id AND c.name = n.name
FOR KEY SHARE OF c
