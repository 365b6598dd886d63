-- One was never checked, and one was refused by Apple until it was given up; bea's, eve's and pat's are verified.
INSERT INTO ledger.receipt (app_id, digest, data, received_at, asked_at, outcome, reason)
SELECT app_id, sha256('forged'), 'forged', '2026-03-20Z', '2026-03-21Z'::timestamptz, 'rejected'::ledger.outcome,
       'It could not be authenticated.' FROM ledger.app;
INSERT INTO ledger.receipt (app_id, digest, data, received_at) SELECT app_id, sha256('new'), 'new', '2026-03-22Z' FROM ledger.app;
INSERT INTO ledger.upload (receipt_id, customer_id, uploaded_at, imported)
SELECT 4, customer_id, '2026-03-20Z'::timestamptz + customer_id * interval '1 minute', false
FROM ledger.customer WHERE name IN ('bea', 'eve');
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT receipt_id, app_id, 'new', '2026-03-22 00:00:05Z', '2026-03-22 00:00:05Z' FROM ledger.receipt WHERE receipt_id = 5;
