-- set from=2023-02-09
-- set until=2023-02-12
-- Of a yearly product: K pays a term at 9 a month and is one month, not a twelfth. V is such a row of verifyReceipt, at the
-- catalog's 96 of a year: 8. VS is another, whose month has a price of its own: 9.50. U is a year paid at once at 120: 10 a
-- month. W has an unknown plan and lasts a month: 7. X and its members: seven seats of a monthly product cost 60,
-- two of them were refunded, which leaves 60 * 5 / 7 = 42.857; three more cost 27 from the 10th on. The members' texts repeat
-- the price and pay nothing. Y is six seats for 30 and three for 15, bought at one instant: 45.
-- N is a quarter of a product that is not in the catalog: four seats for 120 are 40 a month, and with two more for 60 from
-- the 10th on 60, however little of the quarter is left. Together 171.357, then 218.357.
-- Z is two such transactions, and the price of the first cannot be read: unknown. Seven of nine prices are Apple's.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,V,VS,U,W,X,Y,N,Z,M1,M2,M3}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           ownership, price_milliunits, price_currency, sale, path, recorded_at,
                           cancellation_recorded_at)
SELECT subscription_id, p.product, p.quantity, p.since::timestamptz, p.until::timestamptz, false, false, false, p.ownership,
       p.price, CASE WHEN p.price IS NOT NULL OR p.otid = 'Z' THEN 'USD' END, p.sale::jsonb, 'row', p.since::timestamptz,
       CASE WHEN (p.sale::jsonb ->> 'revoked_seats')::int > 0 THEN p.since::timestamptz END
FROM (VALUES
    ('K', 'yearly', 1, '2023-02-01Z', '2023-03-01Z', 'PURCHASED', 9000,
     '{"plan": "MONTHLY", "payment_number": 3, "payments": 12, "term_ends_at_ms": 1701388800000}'),
    ('V', 'yearly', 1, '2023-02-01Z', '2023-03-01Z', NULL, NULL, NULL),
    ('VS', 'yearly', 1, '2023-02-01Z', '2023-03-01Z', NULL, 9500, NULL),
    ('U', 'yearly', 1, '2023-02-01Z', '2024-02-01Z', 'PURCHASED', 120000, '{"plan": "BILLED_UPFRONT"}'),
    ('W', 'yearly', 1, '2023-02-01Z', '2023-03-03Z', 'PURCHASED', 7000, '{"plan": "BY_MOON"}'),
    ('X', 'monthly', 7, '2023-02-01Z', '2023-03-01Z', 'PURCHASED', 60000,
     '{"seats": 7, "revoked_seats": 2, "one_of_several": true}'),
    ('X', 'monthly', 3, '2023-02-10Z', '2023-03-01Z', 'PURCHASED', 27000,
     '{"seats": 3, "revoked_seats": 0, "one_of_several": true}'),
    ('Y', 'monthly', 6, '2023-02-01Z', '2023-03-01Z', 'PURCHASED', 30000, '{"seats": 6, "one_of_several": true}'),
    ('Y', 'monthly', 3, '2023-02-01Z', '2023-03-01Z', 'PURCHASED', 15000, '{"seats": 3, "one_of_several": true}'),
    ('N', 'quarterly', 4, '2023-01-01Z', '2023-04-01Z', 'PURCHASED', 120000, '{"seats": 4, "one_of_several": true}'),
    ('N', 'quarterly', 2, '2023-02-10Z', '2023-04-01Z', 'PURCHASED', 60000, '{"seats": 2, "one_of_several": true}'),
    ('Z', 'monthly', 6, '2023-02-01Z', '2023-03-01Z', 'PURCHASED', NULL, '{"seats": 6, "one_of_several": true}'),
    ('Z', 'monthly', 3, '2023-02-01Z', '2023-03-01Z', 'PURCHASED', 15000, '{"seats": 3, "one_of_several": true}'),
    ('M1', 'monthly', 7, '2023-02-02Z', '2023-03-01Z', 'ASSIGNED', 60000, '{"seats": 7}'),
    ('M2', 'monthly', 7, '2023-02-02Z', '2023-03-01Z', 'BORROWED', 60000, '{"seats": 7}'),
    ('M3', 'monthly', 1, '2023-02-02Z', '2023-03-01Z', 'FAMILY_SHARED', 10000, NULL)
) AS p (otid, product, quantity, since, until, ownership, price, sale)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, flags, version)
SELECT subscription_id, t.valid, tstzrange('2023-02-01Z', NULL), t.state::ledger.state, t.reason::ledger.reason,
       t.state = 'active', CASE WHEN original_transaction_id IN ('K', 'V', 'VS', 'U', 'W') THEN 'yearly'
                                WHEN original_transaction_id = 'N' THEN 'quarterly' ELSE 'monthly' END,
       CASE WHEN original_transaction_id = 'M3' THEN '{family_shared}'::text[]
            WHEN original_transaction_id LIKE 'M%' THEN '{assigned}' ELSE '{}' END, 1
FROM ledger.subscription
CROSS JOIN (VALUES (tstzrange('2023-02-01Z', '2023-03-01Z'), 'active', NULL),
                   (tstzrange('2023-03-01Z', NULL), 'expired', 'voluntary')) AS t (valid, state, reason)
WHERE original_transaction_id IN ('K', 'V', 'VS', 'U', 'W', 'X', 'Y', 'N', 'Z', 'M1', 'M2', 'M3');
