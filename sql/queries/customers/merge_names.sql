-- Merge: assigns the names of customers ($1) to customer $2 from $3 on.
WITH renamed AS (
    UPDATE ledger.customer c SET merged_into = $2::bigint WHERE c.customer_id = ANY($1::bigint[])
), ended AS (
    UPDATE ledger.customer_merge m SET applies = tstzrange(lower(m.applies), $3::timestamptz)
    WHERE m.customer_id = ANY($1::bigint[]) AND upper_inf(m.applies)
    RETURNING m.customer_id
)
INSERT INTO ledger.customer_merge (customer_id, into_id, applies)
SELECT n.customer_id, $2::bigint, tstzrange($3::timestamptz, NULL) FROM unnest($1::bigint[]) AS n(customer_id)
-- The old row of a name ends before its new one begins.
WHERE (SELECT count(*) FROM ended) >= 0
