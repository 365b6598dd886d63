-- Settlement: extends observations after an equal answer ($1 ids, $2 recorded, $3 clocks of the answers).
UPDATE ledger.observation o
SET last_as_of = GREATEST(o.last_as_of, n.as_of)
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS n(observation_id, recorded_at, as_of)
WHERE o.observation_id = n.observation_id AND o.recorded_at = n.recorded_at
