-- bea's was verified before and holds B: suspect. The forged one never was.
INSERT INTO ledger.receipt (app_id, digest, data, received_at, asked_at, outcome, reason, rejections, rejected_since)
SELECT app_id, sha256('forged'), 'forged', '2026-03-20Z', '2026-03-21Z'::timestamptz, 'rejected'::ledger.outcome,
       'It could not be authenticated.', 3, '2026-03-20Z'::timestamptz FROM ledger.app;
UPDATE ledger.receipt SET outcome = 'rejected', reason = 'The account is gone.', rejections = 2, rejected_since = '2026-03-20Z',
    asked_at = '2026-03-21Z', verified_at = '2026-03-19Z' WHERE data = 'bea';
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT receipt_id, app_id, 'sweep', '2026-03-22Z', '2026-03-22Z' FROM ledger.receipt WHERE data = 'bea';
