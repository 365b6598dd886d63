-- Manual grants: ends at $3 the grants of entitlement $2 (null: of all) to customer $1, by $4 because of $5; returns
-- the ended grants and when they would have ended.
WITH ended AS (
    UPDATE ledger.manual_grant h SET known = tstzrange(lower(h.known), $3::timestamptz)
    WHERE h.customer_id = $1::bigint AND ($2::text IS NULL OR h.entitlement = $2::text)
      AND upper_inf(h.known) AND h.valid @> $3::timestamptz
    RETURNING h.*
), stated AS (
    INSERT INTO ledger.manual_grant
        (customer_id, entitlement, valid, known, given_by, reason, ended_by, end_reason)
    SELECT customer_id, entitlement, tstzrange(lower(valid), $3::timestamptz), tstzrange($3::timestamptz, NULL), given_by,
           reason, $4::text, $5::text
    FROM ended WHERE lower(valid) < $3::timestamptz
)
SELECT e.entitlement, lower(e.valid) AS since, upper(e.valid) AS until, e.given_by, e.reason, $4::text AS ended_by,
       $5::text AS end_reason
FROM ended e
ORDER BY e.entitlement COLLATE "C"
