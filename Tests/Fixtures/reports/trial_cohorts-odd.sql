-- set as_known_at=2026-03-25Z
-- T: a trial, billing retry, and the first paid period 62 days after its end, by which Apple had charged after all: converted.
-- U: a trial and a paid period 100 days later: lost, whatever came then. V: a trial that Apple tries to charge for since 1
-- March: undecided. W: two trial periods in a row (a product changed within the trial), then paid: one trial, converted.
-- With A and D of the history that is, by when they began: 2025-09 U lost; 2025-12 T and W converted; 2026-01 as ever;
-- 2026-02 V undecided.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{T,U,V,W}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           path, recorded_at)
SELECT subscription_id, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, p.is_upgraded, p.is_trial, false, 'row',
       p.since::timestamptz
FROM (VALUES ('T', '2025-12-01Z', '2025-12-08Z', false, true), ('T', '2026-02-08Z', '2026-03-08Z', false, false),
             ('U', '2025-09-01Z', '2025-09-08Z', false, true), ('U', '2025-12-17Z', '2026-01-17Z', false, false),
             ('V', '2026-02-22Z', '2026-03-01Z', false, true), ('W', '2025-12-10Z', '2025-12-24Z', true, true),
             ('W', '2025-12-12Z', '2025-12-26Z', false, true), ('W', '2025-12-26Z', '2026-01-26Z', false, false)
) AS p (otid, since, until, is_upgraded, is_trial)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, tstzrange('2026-03-01Z', NULL), tstzrange('2026-03-01Z', NULL), 'billing_retry', false, 'monthly', 1
FROM ledger.subscription WHERE original_transaction_id = 'V';
