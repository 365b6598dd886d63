-- Leases due receipts: worker $1, lease seconds $2, quotas ($3 apps, $4 lanes, $5 counts),
-- at $6 (null: now), of what was due by $7 (null: the same).
WITH clock AS MATERIALIZED (
    SELECT COALESCE($6::timestamptz, now()) AS at
), quota AS MATERIALIZED (
    SELECT * FROM unnest($3::int[], $4::smallint[], $5::int[]) AS q(app_id, lane, receipts)
), pick AS MATERIALIZED (
    SELECT due.receipt_id
    FROM quota q
    CROSS JOIN LATERAL (
        SELECT s.receipt_id FROM ledger.poll_schedule s
        WHERE s.app_id = q.app_id AND s.lane = q.lane AND s.due_at <= (SELECT LEAST($7::timestamptz, at) FROM clock)
        ORDER BY s.due_at LIMIT q.receipts
        FOR NO KEY UPDATE SKIP LOCKED) due
), leased AS (
    UPDATE ledger.poll_schedule s
    SET due_at = (SELECT at FROM clock)
            + make_interval(secs => $2::float8 * (1 << LEAST(s.crashes + (s.leased_by IS NOT NULL)::int, 6))),
        lease_token = nextval('ledger.lease_token_seq'),
        leased_by = $1::int,
        attempts = LEAST(s.attempts + 1, 32000),
        crashes = LEAST(s.crashes + (s.leased_by IS NOT NULL)::int, 32000)
    FROM pick WHERE s.receipt_id = pick.receipt_id
    RETURNING s.receipt_id, s.app_id, s.lane, s.lease_token, s.attempts, s.scheduled_for
)
SELECT l.receipt_id, l.app_id, l.lane, l.lease_token, l.attempts, l.scheduled_for, clock.at AS claimed_at,
       r.environment::text AS environment,
       CASE WHEN l.attempts % 2 = 1 THEN COALESCE(r.latest_receipt, r.data) ELSE r.data END AS data
FROM leased l JOIN ledger.receipt r USING (receipt_id) CROSS JOIN clock
ORDER BY l.receipt_id
