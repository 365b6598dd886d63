-- Inserts one row as large as an order; pgbench runs it.
\set customer random(1, 1000000)
INSERT INTO bench.inserted (customer_id, product_id, quantity, price_milliunits, currency, sealed_key, state, created_at, expires_at)
VALUES (
    :customer, 'com.example.tracker.coins', 1, 4990, 'USD',
    '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4041424344454647',
    'created', now(), now() + interval '1 day');
