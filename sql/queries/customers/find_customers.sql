-- Returns the keys of known customers ($1 apps, $2 names), and their names. For a name merged into another customer it
-- returns that customer's key. Locks them against merge and erasure until the end of the transaction. Intake, manual
-- grants and assignments run it.
SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, c.app_id, c.name,
       COALESCE((SELECT h.name FROM ledger.customer h WHERE h.customer_id = c.merged_into), c.name) AS called
FROM unnest($1::int[], $2::text[]) AS n(app_id, name)
JOIN ledger.customer c ON c.app_id = n.app_id AND c.name = n.name
FOR KEY SHARE OF c
