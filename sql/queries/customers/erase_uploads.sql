-- Erase: deletes the uploads of customers ($1), and the statements they were imported with.
WITH words AS (
    DELETE FROM ledger.provisional p WHERE p.customer_id = ANY($1::bigint[])
)
DELETE FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])
