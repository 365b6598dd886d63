-- Orders: returns the order that Idempotency-Key $2 of app $1 placed within 24 hours, as it was answered, and whether $3 was
-- asked then. Forgets an older use of the key.
WITH forgotten AS (
    DELETE FROM ledger.order_request r USING ledger.app a
    WHERE a.bundle_id = $1::text AND r.app_id = a.app_id AND r.request_key = $2::text
      AND r.asked_at + interval '24 hours' <= now()
)
SELECT o.order_id::text AS order_id, o.app_account_token::text AS app_account_token, o.sealed_key, r.state::text AS state,
       r.expires_at, r.request = $3::bytea AS is_same
FROM ledger.app a
JOIN ledger.order_request r ON r.app_id = a.app_id AND r.request_key = $2::text
JOIN ledger.purchase_order o USING (order_id)
WHERE a.bundle_id = $1::text AND r.asked_at + interval '24 hours' > now()
