-- set as_known_at=2026-03-25Z
-- set from=2025-11-01
-- set until=2025-12-01
-- Five terms whose month ended on 1 November. P paid its second on time. Q's failed and was made twelve days later. R's failed
-- for good. S is still being tried. T made its twelfth: the term was over and owed none. U was refunded within its month.
-- P's second month ended on 1 December, which is not November.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{P1,Q1,R1,S1,T1,U1}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           cancelled_at, is_upgraded, is_trial, is_intro, sale, path, recorded_at)
SELECT subscription_id, p.line, 'yearly', 1, p.since::timestamptz, p.until::timestamptz, p.cancelled::timestamptz, false, false,
       false, jsonb_build_object('plan', 'MONTHLY', 'payment_number', p.number, 'payments', 12), 'row', p.since::timestamptz
FROM (VALUES
    ('P1', 'p1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('P1', 'p2', '2025-11-01Z', '2025-12-01Z', 2, NULL),
    ('Q1', 'q1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('Q1', 'q2', '2025-11-13Z', '2025-12-13Z', 2, NULL),
    ('R1', 'r1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('S1', 's1', '2025-10-01Z', '2025-11-01Z', 1, NULL),
    ('T1', 't12', '2025-10-01Z', '2025-11-01Z', 12, NULL), ('U1', 'u1', '2025-10-01Z', '2025-11-01Z', 1, '2025-10-20Z')
) AS p (otid, line, since, until, number, cancelled)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(t.since::timestamptz, NULL), tstzrange('2025-11-20Z', NULL), t.state::ledger.state,
       t.reason::ledger.reason, t.state = 'active', 'yearly', 1
FROM (VALUES
    ('P1', '2025-10-01Z', 'active', NULL), ('Q1', '2025-10-01Z', 'active', NULL),
    ('R1', '2025-11-01Z', 'expired', 'billing_error'), ('S1', '2025-11-01Z', 'billing_retry', NULL),
    ('T1', '2025-11-01Z', 'expired', 'voluntary'), ('U1', '2025-10-20Z', 'revoked', 'refund')
) AS t (otid, since, state, reason)
JOIN ledger.subscription ON original_transaction_id = t.otid;
