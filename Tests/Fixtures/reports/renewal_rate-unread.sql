-- set as_known_at=2026-03-25Z
-- set until=2025-12-01
-- Months of terms that ended on 1 November and were followed by another. X's has no number and Y's plan is not known: whether
-- they were the last of their terms is not known. Z made its twelfth, and the next cannot be read: it was paid, so the term
-- renewed.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{X1,Y1,Z1}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded,
                           is_trial, is_intro, sale, path, recorded_at)
SELECT subscription_id, p.line, 'yearly', 1, p.since::timestamptz, p.since::timestamptz + interval '1 month', false, false, false,
       p.sale::jsonb, 'row', p.since::timestamptz
FROM (VALUES
    ('X1', 'x1', '2025-10-01Z', '{"plan": "MONTHLY"}'),
    ('X1', 'x2', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 5, "payments": 12}'),
    ('Y1', 'y1', '2025-10-01Z', '{"plan": "WEEKLY", "payment_number": 12, "payments": 12}'),
    ('Y1', 'y2', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 5, "payments": 12}'),
    ('Z1', 'z1', '2025-10-01Z', '{"plan": "MONTHLY", "payment_number": 12, "payments": 12}'),
    ('Z1', 'z2', '2025-11-01Z', '{"plan": "MONTHLY"}')
) AS p (otid, line, since, sale)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, tstzrange('2025-10-01Z', NULL), tstzrange('2025-11-20Z', NULL), 'active', true, 'yearly', 1
FROM ledger.subscription WHERE original_transaction_id LIKE '_1';
