-- Subscriptions ($1) lost access because their outage allowance ran out at $2: versions $3, recorded at $4.
UPDATE ledger.subscription s SET version = n.version, recorded_at = n.recorded_at, hold_ended_at = n.ended_at
FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::timestamptz[]) AS n(subscription_id, ended_at, version, recorded_at)
WHERE s.subscription_id = n.subscription_id
