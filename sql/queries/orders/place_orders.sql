-- Orders: places orders that arrived together; ledger.place_orders says what the parameters mean and what it leaves out.
SELECT order_id::text AS order_id, state::text AS state, expires_at
FROM ledger.place_orders(
    $1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::bytea[], $8::text[], $9::bytea[],
    $10::text[]::uuid[], $11::text[]::uuid[], $12::bytea[], $13::bigint * interval '1 ms', $14::int)
