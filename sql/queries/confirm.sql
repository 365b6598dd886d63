-- Equal answers: one row moves.

-- name: confirm
-- Confirmation: moves the clocks of receipts whose answers equal the last ones, plans their next checks and releases
-- their leases; $1 worker, $2 receipts, $3 tokens, $4 fingerprints of the last answers and $5 of these, $6 Apple's
-- clocks, $7 due, $8 lanes, $9 the clocks of the plans, to a millisecond. Returns the receipts. It leaves out a receipt whose
-- lease is lost, one whose fingerprint another transaction cleared, and one whose contents time alone has changed.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), released AS (
    UPDATE ledger.poll_schedule s
    SET due_at = LEAST(n.due_at, s.want_at), scheduled_for = LEAST(n.due_at, s.want_at), want_at = NULL,
        lane = CASE WHEN s.want_at < n.due_at THEN LEAST(n.lane, 'expiring') ELSE n.lane END,
        attempts = 0, leased_by = NULL, crashes = 0, backs_off = false, confirmed_as_of = n.as_of,
        -- The plan's clock: at another one, a moment later, the rules may give another plan.
        confirmed_at = GREATEST(s.confirmed_at, n.planned_at + interval '999 microseconds'), fingerprint = n.fingerprint
    FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::timestamptz[], $7::timestamptz[],
                $8::text[]::ledger.lane[], $9::timestamptz[])
             AS n(receipt_id, lease_token, last, fingerprint, as_of, due_at, lane, planned_at)
    CROSS JOIN clock
    WHERE s.receipt_id = n.receipt_id AND s.lease_token = n.lease_token AND s.leased_by = $1::int
      AND s.fingerprint = n.last AND s.confirmed_as_of <= n.as_of AND s.equal_until > GREATEST(n.as_of, clock.at)
    RETURNING s.receipt_id, s.app_id, s.confirmed_at
), verified AS (
    INSERT INTO ledger.verified_minute AS v (app_id, minute, backend, answers)
    SELECT r.app_id, date_trunc('minute', r.confirmed_at), pg_backend_pid(), count(*) FROM released r GROUP BY 1, 2
    ON CONFLICT (app_id, minute, backend) DO UPDATE SET answers = v.answers + EXCLUDED.answers
)
SELECT receipt_id FROM released

-- name: move_histories
-- Notes where the Server API's histories of receipts ($1) are read on: at revisions $2.
UPDATE ledger.receipt r SET history_revision = n.revision
FROM unnest($1::bigint[], $2::text[]) AS n (receipt_id, revision)
WHERE r.receipt_id = n.receipt_id
