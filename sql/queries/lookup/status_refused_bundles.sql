-- For status: the bundle ids that refused receipts named, at most $1, the newest first; is_only says that the app has no
-- other receipt.
SELECT a.bundle_id, b.bundle_id AS named, b.receipts, b.last_at,
       NOT EXISTS (SELECT FROM ledger.receipt r WHERE r.app_id = b.app_id) AS is_only
FROM ledger.refused_bundle b JOIN ledger.app a USING (app_id)
WHERE a.removed_at IS NULL
ORDER BY b.last_at DESC, a.bundle_id, b.bundle_id LIMIT $1::int
