-- set as_known_at=2026-03-25Z
-- set until=2026-01-01
-- X and Y were first seen on 20 February 2026, long after their trials: X was over on 8 November 2025 and is lost on that day; Y
-- was charged on 8 December, the end of the trial, and converted then.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{X,Y}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded,
                           is_trial, is_intro, path, recorded_at)
SELECT subscription_id, p.line, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, false, p.is_trial, false, 'row',
       '2026-02-20Z'
FROM (VALUES
    ('X', 'X0', '2025-11-01Z', '2025-11-08Z', true), ('Y', 'Y0', '2025-12-01Z', '2025-12-08Z', true),
    ('Y', 'Y1', '2025-12-08Z', '2026-01-08Z', false)
) AS p (otid, line, since, until, is_trial)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id, occurred_at,
                          as_of, recorded_at)
SELECT gen_random_uuid(), app_id, environment, subscription_id, 1, 0, 'trial.started', 'monthly', '2025-12-01Z', '2026-02-20Z',
       '2026-02-20Z'
FROM ledger.subscription WHERE original_transaction_id IN ('X', 'Y');
