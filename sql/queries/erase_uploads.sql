-- Erase: what customers ($1) uploaded, and the words with which it was imported.
WITH words AS (
    DELETE FROM ledger.provisional p WHERE p.customer_id = ANY($1::bigint[])
)
DELETE FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])
