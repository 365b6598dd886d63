-- Stores five receipts of new customers that are due at once, and remembers when that was.
WITH sent AS (
    INSERT INTO ledger.receipt (app_id, digest, data)
    SELECT s.app_id, sha256(convert_to(clock_timestamp()::text || s.place, 'UTF8')), s.data
    FROM (SELECT * FROM sample ORDER BY random() LIMIT 5) s
    RETURNING receipt_id, app_id
), scheduled AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
    SELECT receipt_id, app_id, 'new', now(), now() FROM sent
)
INSERT INTO purchase_sent SELECT receipt_id, now() FROM sent;
