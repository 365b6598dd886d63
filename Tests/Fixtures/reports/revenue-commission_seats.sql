-- set until=2025-01-10
-- set bucket=day
-- Groups of a yearly product from 1 August 2023: six seats at 240, and three more at 120. K added its three on the 10th, when nine
-- days were served: both at 30 %. L bought both at one instant: 30 % each. M is in its second year, and added its three on the
-- 10th: both at 15 %, as its six of 2022 were not. Of N the six of 2022 were refunded as a whole on the 11th of August; the two
-- that began with them served the year, so the charge of 2023 is at 15 %. P added its three on the 10th of August 2022, and its six
-- of that year were refunded likewise: 356 days were served when it renewed at 30 %, and a second year when it did again, at 15 %.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L,M,N,P}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, cancellation_reason,
                           is_upgraded, is_trial, is_intro, ownership, price_milliunits, price_currency, sale, path, recorded_at,
                           cancellation_recorded_at)
SELECT public.id(p.otid), 'yearly', p.seats, p.since::timestamptz, p.until::timestamptz, p.refunded::timestamptz,
       CASE WHEN p.refunded IS NOT NULL THEN '0' END, false, false, false, 'PURCHASED', 40000 * p.seats, 'USD',
       jsonb_build_object('plan', 'BILLED_UPFRONT', 'seats', p.seats, 'one_of_several', true), 'row', p.since::timestamptz,
       p.refunded::timestamptz
FROM (VALUES
    ('K', 6, '2023-08-01Z', '2024-08-01Z', NULL), ('K', 3, '2023-08-10Z', '2024-08-01Z', NULL),
    ('L', 6, '2023-08-01Z', '2024-08-01Z', NULL), ('L', 3, '2023-08-01Z', '2024-08-01Z', NULL),
    ('M', 6, '2022-08-01Z', '2023-08-01Z', NULL), ('M', 6, '2023-08-01Z', '2024-08-01Z', NULL),
    ('M', 3, '2023-08-10Z', '2024-08-01Z', NULL),
    ('N', 6, '2022-08-01Z', '2023-08-01Z', '2022-08-11Z'), ('N', 2, '2022-08-01Z', '2023-08-01Z', NULL),
    ('N', 2, '2023-08-01Z', '2024-08-01Z', NULL),
    ('P', 6, '2022-08-01Z', '2023-08-01Z', '2022-08-11Z'), ('P', 3, '2022-08-10Z', '2023-08-01Z', NULL),
    ('P', 3, '2023-08-01Z', '2024-08-01Z', NULL), ('P', 3, '2024-08-01Z', '2025-08-01Z', NULL)
) AS p (otid, seats, since, until, refunded);
