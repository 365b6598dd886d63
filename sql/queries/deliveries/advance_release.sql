-- Deliveries: records how far the release of product $2 of app $1 is ($3 purchases, $4 subscriptions), or its end.
WITH ended AS (
    DELETE FROM ledger.delivery_release r
    WHERE r.app_id = $1::int AND r.product_id = $2::text AND num_nonnulls($3::bigint, $4::bigint) = 0
)
UPDATE ledger.delivery_release r SET after_purchase = $3::bigint, after_subscription = $4::bigint
WHERE r.app_id = $1::int AND r.product_id = $2::text AND num_nonnulls($3::bigint, $4::bigint) > 0
