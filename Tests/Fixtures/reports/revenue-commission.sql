-- set as_known_at=2026-03-25Z
-- set until=2025-01-10
-- Y paid 365 days in 2021, so its charge of 1 January 2022 is at 15 %; after 61 days without paid service the one of 3 April
-- 2022 is at 30 % again. R was refunded a year from 2021 on, which counts no paid day: 30 % for the next. From 2023 on the app
-- was in the Small Business Program: Y's charge of 2023 is at 15 % for that. 10 USD each, for the product is monthly.
INSERT INTO ledger.small_business SELECT app_id, tstzrange('2023-01-01Z', NULL), tstzrange('2023-01-01Z', NULL) FROM ledger.app;
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{Y,R}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           path, recorded_at, cancelled_at, cancellation_recorded_at)
SELECT subscription_id, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, false, false, false, 'row',
       p.since::timestamptz, p.refunded::timestamptz, p.refunded::timestamptz
FROM (VALUES ('Y', '2021-01-01Z', '2022-01-01Z', NULL), ('Y', '2022-01-01Z', '2022-02-01Z', NULL),
             ('Y', '2022-04-03Z', '2022-05-03Z', NULL), ('Y', '2023-01-01Z', '2023-02-01Z', NULL),
             ('R', '2021-01-01Z', '2022-01-01Z', '2021-01-02Z'), ('R', '2022-01-01Z', '2022-02-01Z', NULL)
) AS p (otid, since, until, refunded)
JOIN ledger.subscription ON original_transaction_id = p.otid;
