-- Settlement: inserts answers that differ in meaning from the previous ones; ids were reserved. $1 to $12 are the
-- columns named below.
INSERT INTO ledger.observation
    (observation_id, receipt_id, app_id, lease_token, outcome, status, reason, environment, first_as_of, last_as_of, meaning,
     body, recorded_at)
SELECT n.observation_id, n.receipt_id, n.app_id, n.lease_token, n.outcome::ledger.outcome, n.status, n.reason,
       n.environment::ledger.environment, n.as_of, n.as_of, n.meaning, n.body, n.recorded_at
FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::int[], $7::text[], $8::text[],
            $9::timestamptz[], $10::bytea[], $11::bytea[], $12::timestamptz[])
    AS n(observation_id, receipt_id, app_id, lease_token, outcome, status, reason, environment, as_of, meaning, body,
         recorded_at)
