-- set from=2023-01-01
-- set until=2023-01-09
-- L, whose months last a day: a trial that Apple prices at 0 pays nothing; then the catalog's 10, Apple's 8 twice, Apple's 9, the
-- catalog's 10 again because no signed text came, and Apple's 8.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id) SELECT app_id, 'Production', 'L' FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           price_milliunits, price_currency, path, recorded_at)
SELECT subscription_id, 'monthly', 1, p.since::timestamptz, p.since::timestamptz + interval '1 day', false, p.price IS NOT DISTINCT FROM 0, false,
       p.price, CASE WHEN p.price IS NOT NULL THEN 'USD' END, 'row', p.since::timestamptz
FROM ledger.subscription
CROSS JOIN (VALUES ('2023-01-01Z', 0), ('2023-01-02Z', NULL), ('2023-01-03Z', 8000), ('2023-01-04Z', 8000),
                   ('2023-01-05Z', 9000), ('2023-01-06Z', NULL), ('2023-01-07Z', 8000)) AS p (since, price)
WHERE original_transaction_id = 'L';
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, flags, version)
SELECT subscription_id, t.valid, tstzrange('2023-01-01 00:01Z', NULL), t.state::ledger.state, t.reason::ledger.reason,
       t.state = 'active', 'monthly', t.flags, 1
FROM ledger.subscription
CROSS JOIN (VALUES (tstzrange('2023-01-01Z', '2023-01-02Z'), 'active', NULL, '{trial}'::text[]),
                   (tstzrange('2023-01-02Z', '2023-01-08Z'), 'active', NULL, '{}'),
                   (tstzrange('2023-01-08Z', NULL), 'expired', 'voluntary', '{}')) AS t (valid, state, reason, flags)
WHERE original_transaction_id = 'L';
