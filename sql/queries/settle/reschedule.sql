-- Settlement: releases leases that are still ours and sets the next check; $1 worker, $2 to $14 are the columns named
-- below. Returns the receipts.
-- A receipt for which an earlier check was requested meanwhile gets that earlier check, and becomes urgent.
UPDATE ledger.poll_schedule s
SET due_at = LEAST(n.due_at, s.want_at), scheduled_for = LEAST(n.due_at, s.want_at), want_at = NULL,
    lane = CASE WHEN s.want_at < n.due_at AND n.lane <> 'quarantine' THEN LEAST(n.lane, 'expiring') ELSE n.lane END,
    attempts = n.attempts, leased_by = NULL, crashes = 0,
    fingerprint = n.fingerprint, meaning = n.meaning, polled = n.polled, confirmed_as_of = n.as_of,
    equal_until = CASE WHEN n.as_of IS NOT NULL THEN COALESCE(n.equal_until, 'infinity') END,
    confirmed_at = CASE WHEN n.as_of IS NOT NULL THEN n.recorded_at END, backs_off = n.backs_off,
    follow_ups = n.follow_ups, is_sandbox = COALESCE(r.environment = 'Sandbox', s.is_sandbox)
FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[]::ledger.lane[], $6::smallint[], $7::bytea[], $8::bytea[],
            $9::text[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::boolean[], $14::smallint[])
    AS n(receipt_id, lease_token, due_at, lane, attempts, fingerprint, meaning, polled, equal_until, as_of, recorded_at,
         backs_off, follow_ups)
    JOIN ledger.receipt r USING (receipt_id)
WHERE s.receipt_id = n.receipt_id AND s.lease_token = n.lease_token AND s.leased_by = $1::int
RETURNING s.receipt_id
