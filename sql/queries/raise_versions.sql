-- Customer: a change of owner is a version ($2) recorded at ($3) of each subscription ($1), and of each one-time purchase
-- ($4 to $6 likewise).
WITH subscriptions AS (
    UPDATE ledger.subscription s SET version = n.version, recorded_at = n.recorded_at
    FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS n(subscription_id, version, recorded_at)
    WHERE s.subscription_id = n.subscription_id
)
UPDATE ledger.purchase p SET version = n.version, recorded_at = n.recorded_at
FROM unnest($4::bigint[], $5::bigint[], $6::timestamptz[]) AS n(purchase_id, version, recorded_at)
WHERE p.purchase_id = n.purchase_id
