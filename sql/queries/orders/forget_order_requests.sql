-- Orders: deletes Idempotency-Keys that are older than 24 hours, at most $1.
DELETE FROM ledger.order_request r
WHERE (r.app_id, r.request_key) IN (
    SELECT o.app_id, o.request_key FROM ledger.order_request o
    WHERE o.asked_at <= now() - interval '24 hours' ORDER BY o.asked_at LIMIT $1::int)
