-- List: looks at up to $8 subscriptions of app $1 after the one with the environment $2 and id $3, up to the environment
-- $4, and returns those in the state $6 and of the product $7 (nulls: any), at most $5. Every row has the place of the last
-- one looked at, where there may be more; a row without an id: none was found.
SELECT f.*, l.environment::text AS last_environment, l.original_transaction_id AS last_id
FROM (SELECT) one
LEFT JOIN (
    SELECT s.environment, s.original_transaction_id FROM ledger.subscription s
    WHERE s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND s.version > 0
      AND (s.environment, s.original_transaction_id) > ($2::text::ledger.environment, $3::text)
      AND s.environment <= $4::text::ledger.environment
    ORDER BY s.environment, s.original_transaction_id OFFSET $8::int - 1 LIMIT 1) l ON true
LEFT JOIN (
    SELECT v.customer, v.environment, v.original_transaction_id, v.subscription_group_identifier, v.product_id, v.state,
           v.reason, v.entitled, v.expires_at, v.entitled_until, v.will_renew, v.renews_to_product_id, v.flags, v.periods,
           v.started_at, v.as_of, v.checked_at, v.plan, v.payment_number, v.payments, v.commitment_ends_at,
           v.next_payment, v.seats
    FROM (
        SELECT s.subscription_id, s.environment, s.original_transaction_id FROM ledger.subscription s
        WHERE s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND s.version > 0
          AND (s.environment, s.original_transaction_id) > ($2::text::ledger.environment, $3::text)
          AND s.environment <= $4::text::ledger.environment
        ORDER BY s.environment, s.original_transaction_id LIMIT $8::int) p
    CROSS JOIN LATERAL (
        SELECT v.* FROM ledger.subscription_state v WHERE v.subscription_id = p.subscription_id OFFSET 0) v
    WHERE ($6::text IS NULL OR v.state = $6::text) AND ($7::text IS NULL OR v.product_id = $7::text)
    ORDER BY p.environment, p.original_transaction_id LIMIT $5::int) f ON true
ORDER BY f.environment, f.original_transaction_id
