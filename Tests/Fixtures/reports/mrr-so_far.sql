-- set as_known_at=2026-03-20 12:00Z
-- set from=2026-03-19
-- J is over and E in billing retry since midnight of the 20th, which is not over: C 8, G 8, H 12 make 28.
-- K pays until noon and one second, so it pays at noon: 38. L begins after noon and does not count yet.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           is_upgraded, is_trial, is_intro, path, recorded_at)
SELECT subscription_id, p.line, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, false, false, false, 'row',
       '2026-02-20Z'
FROM (VALUES ('K', 'K1', '2026-02-20 12:00:01Z', '2026-03-20 12:00:01Z'),
             ('L', 'L1', '2026-03-20 15:00Z', '2026-04-20 15:00Z')) AS p (otid, line, since, until)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, t.valid, tstzrange('2026-02-20Z', NULL), t.state::ledger.state, t.reason::ledger.reason,
       t.state = 'active', 'monthly', 1
FROM ledger.period
CROSS JOIN LATERAL (VALUES (tstzrange(purchased_at, expires_at), 'active', NULL),
                           (tstzrange(expires_at, NULL), 'expired', 'voluntary')) AS t (valid, state, reason)
WHERE web_order_line_item_id IN ('K1', 'L1');
