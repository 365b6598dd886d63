-- Prune: deletes support calls sent before $1, at most $2, oldest first.
DELETE FROM ledger.support_call c
WHERE c.request_id IN (
    SELECT n.request_id FROM ledger.support_call n WHERE n.asked_at < $1::timestamptz ORDER BY n.asked_at LIMIT $2::int)
