-- Manual grants: deletes Idempotency-Keys that are older than 24 hours, at most $1.
DELETE FROM ledger.grant_request r
WHERE (r.app_id, r.request_key) IN (
    SELECT g.app_id, g.request_key FROM ledger.grant_request g
    WHERE g.asked_at <= now() - interval '24 hours' ORDER BY g.asked_at LIMIT $1::int)
