-- Returns the apps with verified notifications about what no receipt polls, and about how many subscriptions and purchases;
-- whether each has a server key, so that a worker takes them up. Without one that includes what a receipt that a notification made
-- showed while there was a key, and no receipt polls now.
WITH known AS (
    SELECT n.app_id, n.environment, n.original_transaction_id FROM ledger.notification n WHERE n.effect = 'unpolled'
    UNION
    SELECT o.app_id, o.environment, o.original_transaction_id
    FROM ledger.app a
    JOIN ledger.receipt r ON r.app_id = a.app_id AND r.form = 'transaction_id' AND r.erased_at IS NULL
    CROSS JOIN LATERAL (
        SELECT s.app_id, s.environment, s.original_transaction_id
        FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
        WHERE l.receipt_id = r.receipt_id AND s.polled_by IS NULL AND s.version > 0
        UNION ALL
        SELECT p.app_id, p.environment, p.original_transaction_id
        FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
        WHERE l.receipt_id = r.receipt_id AND p.polled_by IS NULL AND p.version > 0) o
    WHERE NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id)
      AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
)
SELECT a.bundle_id, count(*) AS subjects, k.app_id IS NOT NULL AS has_key
FROM known n JOIN ledger.app a USING (app_id) LEFT JOIN ledger.server_key k USING (app_id)
WHERE a.removed_at IS NULL
GROUP BY a.bundle_id, k.app_id ORDER BY a.bundle_id
