-- Only what lasts is left of the history: L, which renews and pays for five seats, and M, which does not and is in a trial,
-- have access; N has not.
DELETE FROM ledger.subscription;
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at, will_renew)
SELECT app_id, s.environment::ledger.environment, s.name, 1, s.at::timestamptz, s.at::timestamptz, s.at::timestamptz, s.renews
FROM ledger.app CROSS JOIN (VALUES ('Production', 'L', '2026-03-02Z', true), ('Production', 'M', '2026-03-01Z', false),
                                   ('Production', 'N', '2026-02-01Z', false), ('Sandbox', 'S', '2026-03-03Z', true)
) AS s (environment, name, at, renews);
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, flags, version)
SELECT subscription_id, tstzrange('2026-01-01Z', NULL), tstzrange('2026-01-01Z', NULL),
       CASE original_transaction_id WHEN 'N' THEN 'expired' ELSE 'active' END::ledger.state,
       CASE original_transaction_id WHEN 'N' THEN 'voluntary' END::ledger.reason, original_transaction_id <> 'N', 'monthly',
       CASE original_transaction_id WHEN 'M' THEN '{trial}' ELSE '{}' END::text[], 1
FROM ledger.subscription;
UPDATE ledger.subscription SET sale = '{"seats": 5}' WHERE original_transaction_id = 'L';
