-- Settlement: closes the open spans ($1 subscriptions, $2 starts) at the recorded instants ($3).
UPDATE ledger.subscription_span p
SET known = tstzrange(lower(p.known), c.recorded_at)
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS c(subscription_id, valid_from, recorded_at)
WHERE p.subscription_id = c.subscription_id AND lower(p.valid) = c.valid_from AND upper_inf(p.known)
