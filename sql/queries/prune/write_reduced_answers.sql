-- Prune: stores reduced bodies ($2) of the answers $1, recorded before $3.
UPDATE ledger.observation o SET body = r.body, reduced = true
FROM unnest($1::bigint[], $2::bytea[]) AS r(observation_id, body)
WHERE o.observation_id = r.observation_id AND o.recorded_at < $3::timestamptz
