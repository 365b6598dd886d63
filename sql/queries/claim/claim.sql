-- Leases due receipts: worker $1, lease seconds $2, quotas ($3 apps, $4 lanes, $5 counts, $8 due at that time or
-- later, $9 in that environment alone), at $6 (null: now), among those due by $7 (null: the same). A receipt whose
-- workers crashed three times is not leased: it moves to quarantine, where it is checked alone. It is returned too, so that
-- other receipts take over what it polls. A quota for the sandbox alone reads no row of production: an index of its own
-- has the sandbox's.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($6::timestamptz, now()) AS at
), quota AS MATERIALIZED (
    SELECT q.app_id, q.lane, q.receipts, q.low, q.environment IS NOT DISTINCT FROM 'Sandbox' AS only_sandbox,
           q.environment IS NOT DISTINCT FROM 'Production' AS only_production
    FROM unnest($3::int[], $4::text[]::ledger.lane[], $5::int[], $8::timestamptz[], $9::text[])
        AS q(app_id, lane, receipts, low, environment)
), pick AS MATERIALIZED (
    SELECT due.row, due.due_at, due.crashes, q.lane <> 'quarantine' AND due.crashes >= 3 AS quarantined
    FROM quota q
    CROSS JOIN LATERAL (
        SELECT s.ctid AS row, s.due_at, LEAST(s.crashes + (s.leased_by IS NOT NULL)::int, 32000) AS crashes
        FROM ledger.poll_schedule s
        WHERE s.app_id = q.app_id AND s.lane = q.lane AND s.due_at <= (SELECT LEAST($7::timestamptz, at) FROM clock)
          AND s.due_at >= COALESCE(q.low, '-infinity') AND NOT (q.only_production AND s.is_sandbox)
        ORDER BY s.due_at LIMIT q.receipts
        FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE NOT q.only_sandbox
    UNION ALL
    SELECT due.row, due.due_at, due.crashes, q.lane <> 'quarantine' AND due.crashes >= 3 AS quarantined
    FROM quota q
    CROSS JOIN LATERAL (
        SELECT s.ctid AS row, s.due_at, LEAST(s.crashes + (s.leased_by IS NOT NULL)::int, 32000) AS crashes
        FROM ledger.poll_schedule s
        WHERE s.app_id = q.app_id AND s.lane = q.lane AND s.due_at <= (SELECT LEAST($7::timestamptz, at) FROM clock)
          AND s.due_at >= COALESCE(q.low, '-infinity') AND s.is_sandbox
        ORDER BY s.due_at LIMIT q.receipts
        FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE q.only_sandbox
), leased AS (
    UPDATE ledger.poll_schedule s
    SET lane = CASE WHEN pick.quarantined THEN 'quarantine' ELSE s.lane END,
        due_at = CASE WHEN pick.quarantined THEN clock.at
            ELSE clock.at + make_interval(
                secs => $2::float8 * (1 << LEAST(pick.crashes, CASE s.lane WHEN 'quarantine' THEN 10 ELSE 6 END))) END,
        lease_token = nextval('ledger.lease_token_seq'),
        leased_by = CASE WHEN NOT pick.quarantined THEN $1::int END,
        attempts = LEAST(s.attempts + 1, 32000),
        crashes = pick.crashes,
        scheduled_for = LEAST(s.scheduled_for, CASE WHEN s.want_at <= clock.at THEN s.want_at END),
        want_at = CASE WHEN s.want_at > clock.at THEN s.want_at END
    FROM pick CROSS JOIN clock WHERE s.ctid = pick.row
    RETURNING s.receipt_id, s.app_id, s.lane, s.lease_token, s.attempts, s.scheduled_for, s.fingerprint,
              s.meaning, s.polled, pick.due_at, pick.quarantined
)
SELECT l.receipt_id, l.quarantined, l.app_id, l.lane::text AS lane, l.lease_token, l.attempts, l.scheduled_for, l.due_at,
       l.fingerprint, l.meaning, l.polled, clock.at AS claimed_at,
       r.form::text AS form, r.vouched, r.transaction_id, r.history_revision,
       r.environment::text AS environment, l.attempts % 2 = 1 AND r.latest_receipt IS NOT NULL AS asks_latest,
       CASE WHEN l.attempts % 2 = 1 THEN COALESCE(r.latest_receipt, r.data) ELSE r.data END AS data
FROM leased l JOIN ledger.receipt r USING (receipt_id) CROSS JOIN clock
ORDER BY l.receipt_id
