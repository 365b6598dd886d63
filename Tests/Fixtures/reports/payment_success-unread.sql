-- set as_known_at=2026-03-25Z
-- set from=2025-05-01
-- set until=2025-12-01
-- set bucket=year
-- V and W had a free week that Apple counts as number 1; the payment that followed is number 1 of V, and 2 of W: neither week
-- owed one. X paid eight months from April on, of which the fourth has no number; Y the same, by a plan that is not known: the
-- months 1, 2, 5, 6 and 7 were followed on time, the third by what cannot be read. U's third was followed by a row of
-- verifyReceipt, which has no plan. T's third was followed by a year that was paid at once, 19 days later: failed.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{T1,U1,V1,W1,X1,Y1}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded,
                           is_trial, is_intro, sale, path, recorded_at)
SELECT subscription_id, p.line, 'yearly', 1, p.since::timestamptz, p.until::timestamptz, false, p.line LIKE 'free%', false,
       p.sale, 'row', p.since::timestamptz
FROM (
    SELECT 'X1', 'x' || n, make_timestamptz(2025, 3 + n, 1, 0, 0, 0, 'UTC'), make_timestamptz(2025, 4 + n, 1, 0, 0, 0, 'UTC'),
           CASE n WHEN 4 THEN '{"plan": "MONTHLY"}'
                  ELSE jsonb_build_object('plan', 'MONTHLY', 'payment_number', n, 'payments', 12) END
    FROM generate_series(1, 8) n
    UNION ALL
    SELECT 'Y1', 'y' || n, make_timestamptz(2025, 3 + n, 1, 0, 0, 0, 'UTC'), make_timestamptz(2025, 4 + n, 1, 0, 0, 0, 'UTC'),
           jsonb_build_object('plan', CASE n WHEN 4 THEN 'WEEKLY' ELSE 'MONTHLY' END, 'payment_number', n, 'payments', 12)
    FROM generate_series(1, 8) n
    UNION ALL
    VALUES
        ('V1', 'free_v', '2025-10-25Z'::timestamptz, '2025-11-01Z'::timestamptz,
         '{"plan": "MONTHLY", "payment_number": 1, "payments": 12}'::jsonb),
        ('V1', 'v1', '2025-11-01Z', '2025-12-01Z', '{"plan": "MONTHLY", "payment_number": 1, "payments": 12}'),
        ('W1', 'free_w', '2025-10-25Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 1, "payments": 12}'),
        ('W1', 'w2', '2025-11-01Z', '2025-12-01Z', '{"plan": "MONTHLY", "payment_number": 2, "payments": 12}'),
        ('U1', 'u3', '2025-10-01Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 3, "payments": 12}'),
        ('U1', 'u4', '2025-11-01Z', '2025-12-01Z', NULL),
        ('T1', 't3', '2025-10-01Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 3, "payments": 12}'),
        ('T1', 't4', '2025-11-20Z', '2026-11-20Z', '{"plan": "BILLED_UPFRONT"}')
) AS p (otid, line, since, until, sale)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, tstzrange('2025-04-01Z', NULL), tstzrange('2025-11-20Z', NULL), 'active', true, 'yearly', 1
FROM ledger.subscription WHERE original_transaction_id LIKE '_1';
