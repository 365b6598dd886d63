-- Returns webhooks $1 (null: all) of app $2 (null: every app) as the view shows them, with whole URL and sealed secrets.
SELECT v.*, w.url AS whole_url, w.sealed_secret, w.sealed_previous_secret
FROM perennial.webhook_now v JOIN ledger.webhook w USING (webhook_id)
WHERE ($1::int IS NULL OR v.webhook_id = $1::int) AND ($2::text IS NULL OR v.bundle_id = $2::text)
ORDER BY v.webhook_id
