-- Removes app $1 unless receipts of it are stored: its secrets with what Apple said of them, its keys, its webhooks, its
-- address of notifications and the counts of refused bundle ids and unread claims go, and its API keys end. Returns no row
-- where receipts are left.
WITH removed AS (
    UPDATE ledger.app a
    SET removed_at = now(), sealed_secret = NULL, sealed_previous_secret = NULL, notification_digest = NULL
    WHERE a.app_id = $1::int
      AND NOT EXISTS (SELECT FROM ledger.receipt r WHERE r.app_id = a.app_id AND r.erased_at IS NULL)
    RETURNING a.app_id
), ended AS (
    UPDATE ledger.api_key k SET revoked_at = now() FROM removed n WHERE k.app_id = n.app_id AND k.revoked_at IS NULL
), unsealed AS (
    DELETE FROM ledger.offer_key k USING removed n WHERE k.app_id = n.app_id
), unkeyed AS (
    DELETE FROM ledger.server_key k USING removed n WHERE k.app_id = n.app_id
), untried AS (
    DELETE FROM ledger.secret_trial t USING removed n WHERE t.app_id = n.app_id
), unread AS (
    DELETE FROM ledger.unread_claim u USING removed n WHERE u.app_id = n.app_id
), uncounted AS (
    DELETE FROM ledger.refused_bundle b USING removed n WHERE b.app_id = n.app_id
), unhooked AS (
    DELETE FROM ledger.webhook w USING removed n WHERE w.app_id = n.app_id
)
SELECT n.app_id FROM removed n
