-- Grants by hand, step 2, under the lock: the instant to record, later than everything recorded of customer $1 before.
SELECT GREATEST(clock_timestamp(), max(lower(known)) + interval '1 microsecond') AS recorded_at
FROM ledger.hand_grant WHERE customer_id = $1::bigint
