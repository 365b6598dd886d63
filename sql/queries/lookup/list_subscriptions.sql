-- List: returns the subscriptions of app $1 after the one with the environment $2 and id $3, up to the environment $4, at
-- most $5.
WITH page AS MATERIALIZED (
    SELECT s.subscription_id FROM ledger.subscription s
    WHERE s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND s.version > 0
      AND (s.environment, s.original_transaction_id) > ($2::text::ledger.environment, $3::text)
      AND s.environment <= $4::text::ledger.environment
    ORDER BY s.environment, s.original_transaction_id LIMIT $5::int
)
SELECT v.customer, v.environment, v.original_transaction_id, v.subscription_group_identifier, v.product_id, v.state, v.reason,
       v.entitled, v.expires_at, v.entitled_until, v.will_renew, v.renews_to_product_id, v.flags, v.periods, v.started_at,
       v.as_of, v.checked_at
FROM page p
CROSS JOIN LATERAL (
    SELECT v.* FROM ledger.subscription_state v WHERE v.subscription_id = p.subscription_id OFFSET 0) v
ORDER BY v.environment, v.original_transaction_id
