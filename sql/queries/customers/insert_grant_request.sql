-- Manual grants: notes that Idempotency-Key $2 of app $1, which asked $3, made the grant of entitlement $5 that customer $4
-- got at $6. Returns no row where another request took the key within 24 hours.
INSERT INTO ledger.grant_request AS r (app_id, request_key, request, manual_grant_id, asked_at)
SELECT $1::int, $2::text, $3::bytea, h.manual_grant_id, $6::timestamptz
FROM ledger.manual_grant h
WHERE h.customer_id = $4::bigint AND h.entitlement = $5::text AND lower(h.known) = $6::timestamptz
  AND upper_inf(h.known) AND h.ended_by IS NULL
ON CONFLICT (app_id, request_key) DO UPDATE
SET request = excluded.request, manual_grant_id = excluded.manual_grant_id, asked_at = excluded.asked_at
WHERE r.asked_at <= excluded.asked_at - interval '24 hours'
RETURNING r.request_key
