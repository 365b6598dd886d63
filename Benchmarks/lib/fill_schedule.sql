-- Fills the schedule with :receipts due receipts of twenty apps, in one lane, and orders them as claims will take them.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
ALTER TABLE ledger.receipt DROP CONSTRAINT receipt_digest_unique;
ALTER TABLE ledger.poll_schedule DROP CONSTRAINT poll_schedule_receipt_id_fkey;
INSERT INTO ledger.app (bundle_id, name) SELECT 'com.example.app' || g, 'app' FROM generate_series(1, 20) g;
INSERT INTO ledger.app_budget (app_id, rate, burst, tokens) SELECT app_id, 0, 1, 1 FROM ledger.app;
INSERT INTO ledger.worker (host, pid) VALUES ('benchmark', 1);
INSERT INTO ledger.receipt (app_id, digest, data, environment, outcome, asked_at, verified_at, first_verified_at)
SELECT 1 + g % 20, sha256(int8send(g)), decode(repeat(md5(g::text), 4), 'hex'), 'Production', 'verified', now(), now(), now()
FROM generate_series(1, :receipts) g;
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT r.receipt_id, r.app_id, 4, d.at, d.at
FROM ledger.receipt r
CROSS JOIN LATERAL (SELECT now() - r.receipt_id * interval '30 days' / :receipts AS at) d
ORDER BY hashint8(r.receipt_id);
VACUUM ANALYZE ledger.receipt;
VACUUM ANALYZE ledger.poll_schedule;
CHECKPOINT;
