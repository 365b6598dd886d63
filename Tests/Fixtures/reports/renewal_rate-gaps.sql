-- set as_known_at=2026-03-25Z
-- set until=2025-12-01
-- X lapsed on 1 November into billing retry and Apple could charge on the 20th: recovered. Z turned renewal off, was over on 5
-- November and came back by hand on the 20th: not renewed.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{X,Z}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           path, recorded_at)
SELECT subscription_id, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, false, false, false, 'row',
       p.since::timestamptz
FROM (VALUES ('X', '2025-10-01Z', '2025-11-01Z'), ('X', '2025-11-20Z', '2025-12-20Z'),
             ('Z', '2025-10-05Z', '2025-11-05Z'), ('Z', '2025-11-20Z', '2025-12-20Z')) AS p (otid, since, until)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(t.since::timestamptz, t.until::timestamptz), tstzrange('2025-11-20Z', NULL),
       t.state::ledger.state, t.reason::ledger.reason, t.state = 'active', 'monthly', 1
FROM (VALUES ('X', '2025-10-01Z', '2025-11-01Z', 'active', NULL), ('X', '2025-11-01Z', '2025-11-20Z', 'billing_retry', NULL),
             ('X', '2025-11-20Z', '2025-12-20Z', 'active', NULL), ('X', '2025-12-20Z', NULL, 'expired', 'voluntary'),
             ('Z', '2025-10-05Z', '2025-11-05Z', 'active', NULL), ('Z', '2025-11-05Z', '2025-11-20Z', 'expired', 'voluntary'),
             ('Z', '2025-11-20Z', '2025-12-20Z', 'active', NULL), ('Z', '2025-12-20Z', NULL, 'expired', 'voluntary')
) AS t (otid, since, until, state, reason)
JOIN ledger.subscription ON original_transaction_id = t.otid;
