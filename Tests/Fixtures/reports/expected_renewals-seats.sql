-- set at=2026-03-25Z
-- set days=6
-- What renews on 30 March, all of it at Apple's prices of the running period. K is a group of 6 seats at 29.94 and 3 at 14.97,
-- which began together: 44.91. L added its 3 on the 10th and gave one of the 6 back: 24.95 + 14.97 = 39.92. M's 3 were refunded
-- as a whole: 29.94. One of N's prices cannot be read: unknown. O states no price at all: nine times the catalog's 12, 108. P is
-- a payment of a term without a price: the catalog's year is none of its price. Q's payment at 10.99 has failed already, and
-- its month ends on the 30th: no renewal. R's has not: 10.99. H of the history renews on 1 April, which is later.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, group_id, version, as_of, checked_at, recorded_at,
                                 will_renew, next_payment, expires_at, sale)
SELECT app_id, 'Production', s.otid, 'g', 1, '2026-03-24Z', '2026-03-24Z', '2026-03-24Z', true, true, '2026-03-30Z', s.sale::jsonb
FROM ledger.app CROSS JOIN (VALUES
    ('K', '{"seats": 9}'), ('L', '{"seats": 8}'), ('M', '{"seats": 6}'), ('N', '{"seats": 9}'), ('O', '{"seats": 9}'),
    ('P', '{"plan": "monthly", "payment_number": 3, "payments": 12}'),
    ('Q', '{"plan": "monthly", "payment_number": 3, "payments": 12}'),
    ('R', '{"plan": "monthly", "payment_number": 3, "payments": 12}')) AS s (otid, sale);
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
                           is_intro, ownership, price_milliunits, price_currency, sale, path, recorded_at,
                           cancellation_recorded_at)
SELECT subscription_id, p.product, COALESCE(p.seats, 1), p.since::timestamptz, '2026-03-30Z', p.refunded::timestamptz, false, false,
       false, 'PURCHASED', p.price, p.currency,
       CASE WHEN p.seats IS NULL THEN '{"plan": "MONTHLY", "payment_number": 3, "payments": 12}'
            ELSE jsonb_build_object('seats', p.seats, 'revoked_seats', p.revoked, 'one_of_several', true) END,
       'row', p.since::timestamptz, COALESCE(p.refunded::timestamptz, CASE WHEN p.revoked > 0 THEN '2026-03-10Z'::timestamptz END)
FROM (VALUES
    ('K', 'monthly', 6, 0, '2026-02-28Z', 29940, 'USD', NULL), ('K', 'monthly', 3, 0, '2026-02-28Z', 14970, 'USD', NULL),
    ('L', 'monthly', 6, 1, '2026-02-28Z', 29940, 'USD', NULL), ('L', 'monthly', 3, 0, '2026-03-10Z', 14970, 'USD', NULL),
    ('M', 'monthly', 6, 0, '2026-02-28Z', 29940, 'USD', NULL), ('M', 'monthly', 3, 0, '2026-03-10Z', 14970, 'USD', '2026-03-20Z'),
    ('N', 'monthly', 6, 0, '2026-02-28Z', NULL, 'USD', NULL), ('N', 'monthly', 3, 0, '2026-02-28Z', 14970, 'USD', NULL),
    ('O', 'monthly', 6, 0, '2026-02-28Z', NULL, NULL, NULL), ('O', 'monthly', 3, 0, '2026-02-28Z', NULL, NULL, NULL),
    ('P', 'yearly', NULL, NULL, '2026-02-28Z', NULL, NULL, NULL), ('Q', 'yearly', NULL, NULL, '2026-02-28Z', 10990, 'USD', NULL),
    ('R', 'yearly', NULL, NULL, '2026-02-28Z', 10990, 'USD', NULL)
) AS p (otid, product, seats, revoked, since, price, currency, refunded)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, tstzrange('2026-02-28Z', '2026-03-30Z'), tstzrange('2026-03-24Z', NULL), 'active', true,
       CASE WHEN sale ? 'seats' THEN 'monthly' ELSE 'yearly' END, 1
FROM ledger.subscription WHERE original_transaction_id ~ '^[K-R]$' AND sale IS NOT NULL;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, tstzrange('2026-03-30Z', NULL), tstzrange('2026-03-24Z', NULL), 'billing_retry', false, 'yearly', 1
FROM ledger.subscription WHERE original_transaction_id = 'Q';
