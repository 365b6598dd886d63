-- Orders: lets one transaction at a time claim by proofs of customers ($1), until it ends. The lock comes after those of
-- purchases and before those of customers.
SELECT pg_advisory_xact_lock(hashtext('perennial proof'), hashtext(n.customer_id::text))
FROM (SELECT n.customer_id FROM unnest($1::bigint[]) AS n(customer_id) ORDER BY n.customer_id) n
