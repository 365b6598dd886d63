-- set from=2023-09-01
-- set until=2023-11-01
-- Each of V to Z paid 4.99 for September and was replaced by a year on the 11th, when 20 of 30 days were left: -3.327. Apple
-- refunded V in full on 20 October and W on 25 September: the rest of the price, -1.663, on that day. X was refunded on the
-- 5th, before the replacement: the same. Y is dated 20 October too, but Apple states 60 %: that is the replacement's share, -2.994
-- on the 11th. Z is dated as late without a share: -3.327 on the 11th. September: 5 charges of 4.99, 2 refunds, 4 x -3.327 - 2.994
-- = -16.302; proceeds 5 x 3.493 - 2 x 1.164 - 4 x 2.329 - 2.096 = 3.725, of the years 5 x 27.993.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{V,W,X,Y,Z}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at,
                           cancellation_recorded_at, is_upgraded, is_trial, is_intro, price_milliunits, price_currency,
                           revocation_percentage, path, recorded_at)
SELECT s.subscription_id, n.product_id, 1, n.since::timestamptz, n.until::timestamptz, n.cancelled::timestamptz,
       n.cancelled::timestamptz, n.is_upgraded, false, false, n.price, 'USD', n.share, 'row', n.since::timestamptz
FROM (VALUES ('V', '2023-10-20Z', 100000), ('W', '2023-09-25Z', 100000), ('X', '2023-09-05Z', 100000),
             ('Y', '2023-10-20Z', 60000), ('Z', '2023-10-20Z', NULL)) AS p (otid, cancelled, share)
CROSS JOIN LATERAL (VALUES ('monthly', '2023-09-01Z', '2023-10-01Z', p.cancelled, true, 4990, p.share),
                           ('yearly', '2023-09-11Z', '2024-09-11Z', NULL, false, 39990, NULL))
    AS n (product_id, since, until, cancelled, is_upgraded, price, share)
JOIN ledger.subscription s ON s.original_transaction_id = p.otid;
