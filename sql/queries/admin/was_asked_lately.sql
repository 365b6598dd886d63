-- Returns whether Apple was asked about receipt $1 within $2 seconds.
SELECT COALESCE(GREATEST(r.asked_at, s.confirmed_at) > now() - make_interval(secs => $2::float8), false) AS asked
FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE r.receipt_id = $1::bigint
