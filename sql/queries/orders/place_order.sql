-- Orders: places an order; ledger.place_order says what the parameters mean and what it returns.
SELECT outcome, placed_id::text AS order_id, placed_token::text AS app_account_token, placed_key AS sealed_key,
       placed_state::text AS state, placed_until AS expires_at
FROM ledger.place_order(
    $1::text, $2::text, $3::text, $4::int, $5::bigint, $6::text, $7::bytea, $8::text, $9::bytea, $10::text::uuid,
    $11::text::uuid, $12::bytea, $13::bigint * interval '1 ms', $14::int)
