-- Settlement: releases leases that are still ours and sets the next check; $1 worker, $2 to $10 are the columns named
-- below, purchases are separated by commas. Returns the receipts.
-- A receipt for which an earlier check was requested meanwhile gets that earlier check, and becomes urgent.
UPDATE ledger.poll_schedule s
SET due_at = LEAST(n.due_at, s.want_at), scheduled_for = LEAST(n.due_at, s.want_at), want_at = NULL,
    lane = CASE WHEN s.want_at < n.due_at AND n.lane <> 'quarantine' THEN LEAST(n.lane, 'expiring') ELSE n.lane END,
    attempts = n.attempts, leased_by = NULL, crashes = 0,
    fingerprint = n.fingerprint, purchases = string_to_array(n.purchases, ',')::bigint[],
    purchase_versions = n.purchase_versions, backs_off = n.backs_off,
    confirmed_as_of = NULL, confirmed_at = NULL
FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[]::ledger.lane[], $6::smallint[], $7::bytea[], $8::text[],
            $9::bigint[], $10::boolean[])
    AS n(receipt_id, lease_token, due_at, lane, attempts, fingerprint, purchases, purchase_versions, backs_off)
WHERE s.receipt_id = n.receipt_id AND s.lease_token = n.lease_token AND s.leased_by = $1::int
RETURNING s.receipt_id
