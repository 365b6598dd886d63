-- set from=2023-11-01
-- set until=2023-12-01
-- set bucket=day
-- Groups of 6 seats at 29.94 and 3 at 14.97 until 1 December, which became a yearly product at 71.91 on 16 November, at half of
-- their month. Of M both began on 1 November, and Apple states a share of half: 14.97 and 7.485. N added its three seats on
-- 10 November, and nothing is stated: 15 of 30 days of the six are 14.97, 15 of 21 days of the three are 10.693. Of O nothing
-- is stated, not even the date, as in the sandbox: it is that of what followed both, 14.97 and 7.485. All of it is on the 16th.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{M,N,O}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
                           is_intro, ownership, price_milliunits, price_currency, revocation_percentage, sale, path, recorded_at)
SELECT subscription_id, 'monthly', p.seats, p.since::timestamptz, '2023-12-01Z', p.replaced::timestamptz, true, false, false,
       'PURCHASED', 4990 * p.seats, 'USD', p.share, jsonb_build_object('seats', p.seats, 'one_of_several', true), 'row',
       p.since::timestamptz
FROM (VALUES
    ('M', 6, '2023-11-01Z', '2023-11-16Z', 50000), ('M', 3, '2023-11-01Z', '2023-11-16Z', 50000),
    ('N', 6, '2023-11-01Z', '2023-11-16Z', NULL), ('N', 3, '2023-11-10Z', '2023-11-16Z', NULL),
    ('O', 6, '2023-11-01Z', NULL, NULL), ('O', 3, '2023-11-01Z', NULL, NULL)
) AS p (otid, seats, since, replaced, share)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           ownership, price_milliunits, price_currency, sale, path, recorded_at)
SELECT subscription_id, 'yearly', 9, '2023-11-16Z', '2024-11-16Z', false, false, false, 'PURCHASED', 71910, 'USD',
       '{"seats": 9}', 'row', '2023-11-16Z'
FROM ledger.subscription WHERE original_transaction_id IN ('M', 'N', 'O');
