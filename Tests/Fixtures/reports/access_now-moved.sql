-- Only what lasts is left of the history. K's payment of a term moved to L's subscription, which another customer owns: who paid
-- keeps access to its end, and L is the only payer. M was replaced by what Apple does not show yet, and has paid.
DELETE FROM ledger.subscription;
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at, will_renew)
SELECT app_id, 'Production', unnest('{K,L,M}'::text[]), 1, '2026-03-02Z', '2026-03-02Z', '2026-03-02Z', true FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, cancelled_at,
                           cancellation_reason, is_upgraded, is_trial, is_intro, ownership, sale, path, recorded_at)
SELECT subscription_id, CASE original_transaction_id WHEN 'M' THEN 'm' ELSE 'k' END, 'monthly', 1, '2026-01-01Z', 'infinity',
       CASE original_transaction_id WHEN 'L' THEN NULL ELSE '2026-01-01Z'::timestamptz END,
       CASE original_transaction_id WHEN 'K' THEN 'moved to L' END, original_transaction_id <> 'L', false, false, 'PURCHASED',
       '{"plan": "MONTHLY", "payment_number": 3, "payments": 12}', 'row', '2026-01-01Z'
FROM ledger.subscription;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange('2026-01-01Z', NULL), tstzrange('2026-01-01Z', NULL),
       CASE original_transaction_id WHEN 'L' THEN 'active' ELSE 'awaiting_renewal' END::ledger.state,
       CASE original_transaction_id WHEN 'L' THEN NULL ELSE 'replacement' END::ledger.reason, true, 'monthly', 1
FROM ledger.subscription;
