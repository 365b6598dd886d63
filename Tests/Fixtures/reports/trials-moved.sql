-- set as_known_at=2026-03-25Z
-- set bucket=week
-- As without the moves. On 15 February Apple shows A under X: its trial began and converted as it was told at A. On 20 January
-- it shows D under Y: D ended there because it moved, which is no loss, and Y told on the 22nd that its trial was over.
SELECT public.move('A', 'X', '2026-02-15Z');
SELECT public.report('A', 3, 'subscription.expired', 'monthly', '2026-02-15Z', '2026-02-15Z', '{"moved_to": "X"}');
SELECT public.move('D', 'Y', '2026-01-20Z');
SELECT public.report('D', 3, 'trial.expired', 'monthly', '2026-01-20Z', '2026-01-20Z', '{"moved_to": "Y"}');
UPDATE ledger.event SET subscription_id = public.id('Y') WHERE subscription_id = public.id('D') AND version = 2;
