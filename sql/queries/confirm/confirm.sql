-- Confirmation: moves clocks and releases leases, which is all that answers equal to the previous ones need; worker $1,
-- at $2; $3 receipts, $4 Apple's clocks, $5 due, $6 lanes; $7 subscriptions, $8 their next checks.
WITH answer AS MATERIALIZED (
    SELECT * FROM unnest($3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::text[]::ledger.lane[])
        AS n(receipt_id, as_of, due_at, lane)
), released AS (
    UPDATE ledger.poll_schedule s
    SET due_at = LEAST(n.due_at, s.want_at), scheduled_for = LEAST(n.due_at, s.want_at), want_at = NULL,
        lane = CASE WHEN s.want_at < n.due_at THEN LEAST(n.lane, 'expiring') ELSE n.lane END,
        attempts = 0, leased_by = NULL, crashes = 0, backs_off = false,
        confirmed_as_of = n.as_of, confirmed_at = $2::timestamptz
    FROM answer n WHERE s.receipt_id = n.receipt_id AND s.leased_by = $1::int
    RETURNING s.app_id
), verified AS (
    INSERT INTO ledger.verified_minute AS v (app_id, minute, backend, answers)
    SELECT app_id, date_trunc('minute', $2::timestamptz), pg_backend_pid(), count(*) FROM released GROUP BY app_id
    ON CONFLICT (app_id, minute, backend) DO UPDATE SET answers = v.answers + EXCLUDED.answers
)
UPDATE ledger.subscription s
SET as_of = n.as_of, checked_at = $2::timestamptz, next_check_at = p.next_check_at,
    renewal_as_of = CASE WHEN s.renewal_as_of = s.as_of THEN n.as_of ELSE s.renewal_as_of END
FROM unnest($7::bigint[], $8::timestamptz[]) AS p(subscription_id, next_check_at), answer n
WHERE s.subscription_id = p.subscription_id AND s.polled_by = n.receipt_id
