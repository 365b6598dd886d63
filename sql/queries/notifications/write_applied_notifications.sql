-- Stores what became of notifications ($1): their effects ($2) and when to try again ($3; null: not).
UPDATE ledger.notification n
SET effect = r.effect, apply_at = r.apply_at, attempts = n.attempts + 1, reason = NULL,
    applied_at = CASE WHEN r.effect = 'applied' THEN COALESCE(n.applied_at, clock_timestamp()) END,
    account_token = CASE WHEN r.effect <> 'applied' THEN n.account_token END
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[]) AS r(notification_id, effect, apply_at)
WHERE n.notification_id = r.notification_id
