-- Manual grants: grants customer $1 the entitlement $2 until $3 (null: without an end) from $4, by $5 because of $6.
INSERT INTO ledger.manual_grant (customer_id, entitlement, valid, known, given_by, reason)
VALUES ($1::bigint, $2::text, tstzrange($4::timestamptz, $3::timestamptz), tstzrange($4::timestamptz, NULL), $5::text, $6::text)
RETURNING entitlement, lower(valid) AS since, upper(valid) AS until, given_by, reason, ended_by, end_reason
