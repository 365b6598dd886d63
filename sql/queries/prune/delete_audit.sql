-- Prune: deletes audit rows written before $1, at most $2, oldest first.
DELETE FROM ledger.audit a
WHERE a.audit_id IN (
    SELECT n.audit_id FROM ledger.audit n WHERE n.happened_at < $1::timestamptz ORDER BY n.audit_id LIMIT $2::int)
