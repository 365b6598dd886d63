-- Returns the claims that are not read, at most $1, those of app $2 only where it is not null, and of this name $3.
SELECT a.bundle_id, u.name, u.is_unreadable, u.texts, u.first_seen_at, u.last_seen_at,
       CASE WHEN u.name = $3::text THEN u.example END AS example
FROM ledger.unread_claim u JOIN ledger.app a USING (app_id)
WHERE ($2::int IS NULL OR u.app_id = $2::int) AND ($3::text IS NULL OR u.name = $3::text)
ORDER BY a.bundle_id, u.texts DESC, u.name
LIMIT $1::int
