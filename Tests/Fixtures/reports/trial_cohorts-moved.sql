-- set as_known_at=2026-03-25Z
-- The moves change nothing. On 15 February Apple shows A under X: A has the events of the trial's start and conversion.
-- On 20 January Apple shows D under Y. D ends because it moved, which is no loss. Y has the end of the trial on the 22nd.
SELECT public.move('A', 'X', '2026-02-15Z');
SELECT public.report('A', 3, 'subscription.expired', 'monthly', '2026-02-15Z', '2026-02-15Z', '{"moved_to": "X"}');
SELECT public.move('D', 'Y', '2026-01-20Z');
SELECT public.report('D', 3, 'trial.expired', 'monthly', '2026-01-20Z', '2026-01-20Z', '{"moved_to": "Y"}');
UPDATE ledger.event SET subscription_id = public.id('Y') WHERE subscription_id = public.id('D') AND version = 2;
