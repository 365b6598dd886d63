-- Stores what became of verified notifications ($1): their effects ($2). What is part of the ledger keeps no account token.
UPDATE ledger.notification n
SET effect = r.effect, account_token = CASE WHEN r.effect <> 'applied' THEN n.account_token END
FROM unnest($1::bigint[], $2::text[]) AS r(notification_id, effect)
WHERE n.notification_id = r.notification_id
