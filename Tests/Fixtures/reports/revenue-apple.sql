-- set from=2023-01-01
-- set until=2023-05-01
-- M has Apple's prices: a trial at 0, which is no charge; 1.99 for an introductory month; 4.99, of which Apple gave back 40 %:
-- -1.996, the charge at 30 % and the refund at 30 % make 3.493 - 1.397 = 2.096; 4.99 replaced on 20 March, of which Apple gave
-- back 60 %: -2.994, although 19 of 31 days were left; 39.99 a year. The catalog's price of N is 10 USD. R is three pieces, for
-- which Apple says 2.97 EUR together and gave back half: -1.485, proceeds -1.0395.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{M,N}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at,
                           cancellation_recorded_at, is_upgraded, is_trial, is_intro, price_milliunits, price_currency,
                           revocation_percentage, path, recorded_at)
SELECT subscription_id, p.product_id, 1, p.since::timestamptz, p.until::timestamptz, p.cancelled::timestamptz,
       p.cancelled::timestamptz, p.offer = 'upgraded', p.offer = 'trial', p.offer = 'intro', p.price, p.currency, p.share,
       'row', p.since::timestamptz
FROM (VALUES
    ('M', 'monthly', '2023-01-01Z', '2023-01-08Z', NULL, 'trial', 0, 'USD', NULL),
    ('M', 'monthly', '2023-01-08Z', '2023-02-08Z', NULL, 'intro', 1990, 'USD', NULL),
    ('M', 'monthly', '2023-02-08Z', '2023-03-08Z', '2023-02-20Z', '', 4990, 'USD', 40000),
    ('M', 'monthly', '2023-03-08Z', '2023-04-08Z', '2023-03-20Z', 'upgraded', 4990, 'USD', 60000),
    ('M', 'yearly', '2023-03-20Z', '2024-03-20Z', NULL, '', 39990, 'USD', NULL),
    ('N', 'monthly', '2023-04-01Z', '2023-05-01Z', NULL, '', NULL, NULL, NULL)
) AS p (otid, product_id, since, until, cancelled, offer, price, currency, share)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.purchase
    (app_id, environment, original_transaction_id, product_id, transaction_id, facts, quantity, purchased_at, version, as_of,
     checked_at, recorded_at, first_recorded_at, revoked_at, revocation_recorded_at)
SELECT app_id, 'Production', 'R', 'lifetime', 'R',
       '{"price": {"milliunits": 2970, "currency": "EUR"}, "refunded": {"percentage": 50000}}', 3, '2023-02-10Z', 2,
       '2023-04-05Z', '2023-04-05Z', '2023-04-05Z', '2023-02-10Z', '2023-04-05Z', '2023-04-05Z'
FROM ledger.app;
