-- Split: gives customer $1 their own name back from $2 on, with the uploads made under it before the merge.
WITH renamed AS (
    UPDATE ledger.customer c SET merged_into = NULL WHERE c.customer_id = $1::bigint
), ended AS (
    UPDATE ledger.customer_merge m SET applies = tstzrange(lower(m.applies), $2::timestamptz)
    WHERE m.customer_id = $1::bigint AND upper_inf(m.applies)
)
UPDATE ledger.upload u SET customer_id = $1::bigint, uploaded_as = NULL
WHERE u.uploaded_as = $1::bigint
