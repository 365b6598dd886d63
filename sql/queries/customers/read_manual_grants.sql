-- Customer: returns the manual grants of customers ($1), as known now, newest first, at most $2.
SELECT h.entitlement, lower(h.valid) AS since, upper(h.valid) AS until, h.given_by, h.reason, h.ended_by, h.end_reason
FROM ledger.manual_grant h
WHERE h.customer_id = ANY($1::bigint[]) AND upper_inf(h.known)
ORDER BY lower(h.valid) DESC, h.entitlement COLLATE "C" LIMIT $2::int
