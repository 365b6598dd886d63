-- set as_known_at=2026-03-25Z
-- set from=2023-02-01
-- set until=2025-01-10
-- Y paid for 2022 and for 1 to 31 January 2023; then a month was charged and refunded on its twentieth day, 19 February 2023. The
-- next charge is on 10 April: 69 days after the service that was paid for ended, so 30 %, though 50 after the refund. Z is the
-- other way round: the refund came on 1 May, after the end of the month, and the next charge of 20 March lies 48 days after the
-- service before: 15 %. T paid for 2022 as well; a trial in February (of another product) is no service that was paid for: 30 %
-- on 10 April.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{Y,Z,T}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           path, recorded_at, cancelled_at, cancellation_recorded_at)
SELECT subscription_id, p.product_id, 1, p.since::timestamptz, p.until::timestamptz, false, p.is_trial, false, 'row',
       p.since::timestamptz, p.refunded::timestamptz, p.refunded::timestamptz
FROM (VALUES
    ('Y', 'yearly', '2022-01-01Z', '2023-01-01Z', false, NULL), ('Y', 'monthly', '2023-01-01Z', '2023-01-31Z', false, NULL),
    ('Y', 'monthly', '2023-01-31Z', '2023-03-03Z', false, '2023-02-19Z'), ('Y', 'monthly', '2023-04-10Z', '2023-05-10Z', false, NULL),
    ('Z', 'yearly', '2022-01-01Z', '2023-01-01Z', false, NULL), ('Z', 'monthly', '2023-01-01Z', '2023-01-31Z', false, NULL),
    ('Z', 'monthly', '2023-01-31Z', '2023-03-03Z', false, '2023-05-01Z'), ('Z', 'monthly', '2023-03-20Z', '2023-04-20Z', false, NULL),
    ('T', 'yearly', '2022-01-01Z', '2023-01-01Z', false, NULL), ('T', 'monthly', '2023-01-01Z', '2023-01-31Z', false, NULL),
    ('T', 'monthly', '2023-02-10Z', '2023-02-17Z', true, NULL), ('T', 'monthly', '2023-04-10Z', '2023-05-10Z', false, NULL)
) AS p (otid, product_id, since, until, is_trial, refunded)
JOIN ledger.subscription ON original_transaction_id = p.otid;
