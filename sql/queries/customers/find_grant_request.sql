-- Manual grants: returns the grant that Idempotency-Key $2 made in app $1 within 24 hours before $3, and what was asked.
SELECT r.request, h.entitlement, lower(h.valid) AS since, upper(h.valid) AS until, h.given_by, h.reason, h.ended_by,
       h.end_reason
FROM ledger.grant_request r JOIN ledger.manual_grant h USING (manual_grant_id)
WHERE r.app_id = $1::int AND r.request_key = $2::text AND r.asked_at > $3::timestamptz - interval '24 hours'
