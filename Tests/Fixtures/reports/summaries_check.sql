-- The sums are right, but on 10 January C (yearly from the 25th) was counted twice, and the begin of D's trial on the 15th
-- was forgotten.
INSERT INTO ledger.summary_day
SELECT a.app_id, r.environment::ledger.environment, r.day, r.currency, r.active, r.trial, r.paying, r.monthly_milliunits,
       r.began, r.returned, r.churned, r.trials_started, r.trials_converted, r.trials_lost
FROM perennial.day_recomputed r JOIN ledger.app a USING (bundle_id);
UPDATE ledger.summary_day SET began = began + 1, monthly_milliunits = monthly_milliunits + 10000
WHERE day = '2026-01-10' AND currency = 'USD';
UPDATE ledger.summary_day SET trials_started = 0 WHERE day = '2026-01-15' AND currency = '';
