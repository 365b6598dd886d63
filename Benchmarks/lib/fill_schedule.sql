-- Fills the schedule with :receipts receipts of twenty apps in one lane; five hundred of them come due each second.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET client_min_messages = warning;
SET work_mem = '512MB';
SET maintenance_work_mem = '1GB';
ALTER TABLE ledger.receipt DROP CONSTRAINT receipt_digest_unique, DROP CONSTRAINT receipt_pkey CASCADE;
ALTER TABLE ledger.poll_schedule DROP CONSTRAINT poll_schedule_pkey;
DROP INDEX ledger.poll_schedule_due;
INSERT INTO ledger.app (bundle_id, name) SELECT 'com.example.app' || g, 'app' FROM generate_series(1, 20) g;
INSERT INTO ledger.app_budget (app_id, rate, burst, tokens) SELECT app_id, 0, 1, 1 FROM ledger.app;
INSERT INTO ledger.worker (host, pid) VALUES ('benchmark', 1);
INSERT INTO ledger.receipt (app_id, digest, data, environment, outcome, asked_at, verified_at, first_verified_at)
SELECT 1 + g % 20, sha256(int8send(g)), decode(repeat(md5(g::text), 4), 'hex'), 'Production', 'verified', now(), now(), now()
FROM generate_series(1, :receipts) g;
-- The order in which rows lie has nothing to do with the order in which they come due.
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT g, 1 + g % 20, 'sweep', d.at, d.at
FROM generate_series(1, :receipts) g
CROSS JOIN LATERAL (SELECT (SELECT began_at FROM bench.clock) + g * interval '2 ms' AS at) d
ORDER BY hashint8(g);
ALTER TABLE ledger.receipt ADD PRIMARY KEY (receipt_id);
ALTER TABLE ledger.poll_schedule ADD PRIMARY KEY (receipt_id);
CREATE INDEX poll_schedule_due ON ledger.poll_schedule (app_id, lane, due_at);
VACUUM ANALYZE ledger.receipt;
VACUUM ANALYZE ledger.poll_schedule;
-- A server that has been running for some time has these in its memory.
CREATE EXTENSION pg_prewarm;
SELECT pg_prewarm(oid) AS pages FROM pg_class WHERE relname LIKE 'poll\_schedule%' \g /dev/null
CHECKPOINT;
