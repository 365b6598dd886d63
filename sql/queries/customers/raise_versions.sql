-- Customer: raises versions after a change of owner ($2 versions, $3 recorded) of each subscription ($1), and of each
-- one-time purchase ($4, $5 and $6 likewise).
WITH subscriptions AS (
    UPDATE ledger.subscription s SET version = n.version, recorded_at = n.recorded_at
    FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS n(subscription_id, version, recorded_at)
    WHERE s.subscription_id = n.subscription_id
)
UPDATE ledger.purchase p SET version = n.version, recorded_at = n.recorded_at
FROM unnest($4::bigint[], $5::bigint[], $6::timestamptz[]) AS n(purchase_id, version, recorded_at)
WHERE p.purchase_id = n.purchase_id
