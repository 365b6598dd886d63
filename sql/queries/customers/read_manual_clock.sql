-- Manual grants: returns the instant to record, later than all earlier records of customer $1, whose grants are locked.
SELECT GREATEST(clock_timestamp(), max(lower(known)) + interval '1 microsecond') AS recorded_at
FROM ledger.manual_grant WHERE customer_id = $1::bigint
