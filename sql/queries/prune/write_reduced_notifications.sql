-- Prune: keeps of notifications ($1) their claims ($2) in place of their texts.
UPDATE ledger.notification n SET texts = NULL, claims = r.claims
FROM unnest($1::bigint[], $2::text[]::json[]) AS r(notification_id, claims)
WHERE n.notification_id = r.notification_id
