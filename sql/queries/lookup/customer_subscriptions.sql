-- Returns the subscriptions that customer $2 of app $1 owns now, at most $3.
SELECT v.environment, v.original_transaction_id, v.subscription_group_identifier, v.product_id, v.state, v.reason, v.entitled,
       v.expires_at, v.entitled_until, v.will_renew, v.renews_to_product_id, v.flags, v.periods, v.started_at, v.as_of,
       v.checked_at, v.plan, v.payment_number, v.payments, v.commitment_ends_at, v.next_payment, v.seats
FROM perennial.subscription_now v
WHERE v.bundle_id = $1::text AND v.customer = $2::text
ORDER BY v.environment, v.original_transaction_id COLLATE "C" LIMIT $3::int
