-- set as_known_at=2026-03-25Z
-- set until=2025-12-01
-- Terms of twelve payments. P made its eleventh in October: owed, and no renewal. Q made its twelfth, and the next term began:
-- renewed. R made its twelfth, and the next year was paid at once: renewed. T made its twelfth and was over: not renewed.
-- X is a group whose added seats are no renewal of their own: its month was renewed once. So was that of Y, whose two
-- transactions began together, as did the two that followed, and that of Z, whose first seats were refunded as a whole: the
-- added ones ran to its end. All of W's was refunded.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{P1,Q1,R1,T1,X1,Y1,Z1,W1}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           is_upgraded, is_trial, is_intro, sale, path, recorded_at)
SELECT subscription_id, p.line, p.product, 1, p.since::timestamptz, p.until::timestamptz, false, false, false, p.sale::jsonb,
       'row', p.since::timestamptz
FROM (VALUES
    ('Z1', 'z1', 'monthly', '2025-10-01Z', '2025-11-01Z', '{"seats": 6, "one_of_several": true}'),
    ('Z1', 'z2', 'monthly', '2025-10-10Z', '2025-11-01Z', '{"seats": 3, "one_of_several": true}'),
    ('Z1', 'z3', 'monthly', '2025-11-01Z', '2025-12-01Z', '{"seats": 3}'),
    ('W1', 'w1', 'monthly', '2025-10-01Z', '2025-11-01Z', '{"seats": 6, "one_of_several": true}'),
    ('W1', 'w2', 'monthly', '2025-10-10Z', '2025-11-01Z', '{"seats": 3, "one_of_several": true}'),
    ('P1', 'p11', 'yearly', '2025-10-01Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 11, "payments": 12}'),
    ('P1', 'p12', 'yearly', '2025-11-01Z', '2025-12-01Z', '{"plan": "MONTHLY", "payment_number": 12, "payments": 12}'),
    ('Q1', 'q12', 'yearly', '2025-10-01Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 12, "payments": 12}'),
    ('Q1', 'q1', 'yearly', '2025-11-01Z', '2025-12-01Z', '{"plan": "MONTHLY", "payment_number": 1, "payments": 12}'),
    ('R1', 'r12', 'yearly', '2025-10-01Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 12, "payments": 12}'),
    ('R1', 'r1', 'yearly', '2025-11-01Z', '2026-11-01Z', '{"plan": "BILLED_UPFRONT"}'),
    ('T1', 't12', 'yearly', '2025-10-01Z', '2025-11-01Z', '{"plan": "MONTHLY", "payment_number": 12, "payments": 12}'),
    ('X1', 'x1', 'monthly', '2025-10-01Z', '2025-11-01Z', '{"seats": 7, "one_of_several": true}'),
    ('X1', 'x2', 'monthly', '2025-10-10Z', '2025-11-01Z', '{"seats": 3, "one_of_several": true}'),
    ('X1', 'x3', 'monthly', '2025-11-01Z', '2025-12-01Z', '{"seats": 10}'),
    ('Y1', NULL, 'monthly', '2025-10-01Z', '2025-11-01Z', '{"seats": 6, "one_of_several": true}'),
    ('Y1', NULL, 'monthly', '2025-10-01Z', '2025-11-01Z', '{"seats": 3, "one_of_several": true}'),
    ('Y1', NULL, 'monthly', '2025-11-01Z', '2025-12-01Z', '{"seats": 6, "one_of_several": true}'),
    ('Y1', NULL, 'monthly', '2025-11-01Z', '2025-12-01Z', '{"seats": 3, "one_of_several": true}')
) AS p (otid, line, product, since, until, sale)
JOIN ledger.subscription ON original_transaction_id = p.otid;
UPDATE ledger.period SET cancelled_at = '2025-10-20Z', cancellation_recorded_at = '2025-10-20Z'
WHERE web_order_line_item_id IN ('z1', 'w1', 'w2');
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(t.since::timestamptz, t.until::timestamptz), tstzrange('2025-11-20Z', NULL),
       t.state::ledger.state, t.reason::ledger.reason, t.state = 'active', t.product, 1
FROM (VALUES
    ('P1', 'yearly', '2025-10-01Z', '2025-12-01Z', 'active', NULL), ('P1', 'yearly', '2025-12-01Z', NULL, 'expired', 'voluntary'),
    ('Q1', 'yearly', '2025-10-01Z', '2025-12-01Z', 'active', NULL), ('Q1', 'yearly', '2025-12-01Z', NULL, 'expired', 'voluntary'),
    ('R1', 'yearly', '2025-10-01Z', '2026-11-01Z', 'active', NULL), ('R1', 'yearly', '2026-11-01Z', NULL, 'expired', 'voluntary'),
    ('T1', 'yearly', '2025-10-01Z', '2025-11-01Z', 'active', NULL), ('T1', 'yearly', '2025-11-01Z', NULL, 'expired', 'voluntary'),
    ('X1', 'monthly', '2025-10-01Z', '2025-12-01Z', 'active', NULL), ('X1', 'monthly', '2025-12-01Z', NULL, 'expired', 'voluntary'),
    ('Z1', 'monthly', '2025-10-01Z', '2025-12-01Z', 'active', NULL), ('Z1', 'monthly', '2025-12-01Z', NULL, 'expired', 'voluntary'),
    ('W1', 'monthly', '2025-10-20Z', NULL, 'revoked', 'refund'),
    ('Y1', 'monthly', '2025-10-01Z', '2025-12-01Z', 'active', NULL), ('Y1', 'monthly', '2025-12-01Z', NULL, 'expired', 'voluntary')
) AS t (otid, product, since, until, state, reason)
JOIN ledger.subscription ON original_transaction_id = t.otid;
