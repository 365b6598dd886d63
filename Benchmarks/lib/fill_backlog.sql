-- Makes :receipts receipts due that were verified before, as copies of those that are there.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
CREATE TABLE sample AS
SELECT row_number() OVER (ORDER BY receipt_id) AS place, app_id, data FROM ledger.receipt WHERE verified_at IS NOT NULL;
CREATE UNIQUE INDEX ON sample (place);
WITH copy AS (
    INSERT INTO ledger.receipt (app_id, digest, data, environment, outcome, asked_at, verified_at, first_verified_at)
    SELECT s.app_id, sha256(int8send(g)), s.data, 'Production', 'verified', now(), now(), now()
    FROM generate_series(1, :receipts) g JOIN sample s ON s.place = 1 + g % (SELECT count(*) FROM sample)
    RETURNING receipt_id, app_id
)
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT receipt_id, app_id, 'sweep', now() - interval '1 day', now() - interval '1 day' FROM copy;
CREATE TABLE purchase_sent (receipt_id bigint PRIMARY KEY, due_at timestamptz NOT NULL);
VACUUM ANALYZE ledger.receipt;
VACUUM ANALYZE ledger.poll_schedule;
