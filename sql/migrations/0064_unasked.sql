-- What Apple is not asked about, because the app has no server key.

DROP INDEX ledger.receipt_of_transaction;
CREATE INDEX receipt_of_transaction ON ledger.receipt (app_id, form) WHERE form <> 'receipt';
COMMENT ON INDEX ledger.receipt_of_transaction IS
    'Finds the receipts of an app that only the Server API can be asked about, when its server key comes or goes';

CREATE VIEW ledger.unasked AS
SELECT n.app_id, n.environment, n.original_transaction_id
FROM ledger.notification n WHERE n.effect = 'unpolled'
UNION
SELECT a.app_id, thing.environment, thing.original_transaction_id
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT r.receipt_id, r.environment, r.transaction_id, r.verified_at FROM ledger.receipt r
    WHERE r.app_id = a.app_id AND r.form <> 'receipt' AND r.erased_at IS NULL AND r.rejections = 0 OFFSET 0) r
CROSS JOIN LATERAL (
    SELECT s.environment, s.original_transaction_id
    FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
    WHERE l.receipt_id = r.receipt_id AND s.version > 0
      AND (s.polled_by IS NULL OR s.polled_by = r.receipt_id AND s.next_check_at IS NOT NULL)
    UNION ALL
    SELECT p.environment, p.original_transaction_id
    FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
    WHERE l.receipt_id = r.receipt_id AND p.version > 0
      AND (p.polled_by IS NULL OR p.polled_by = r.receipt_id AND p.next_check_at IS NOT NULL)
    UNION ALL
    SELECT r.environment, r.transaction_id
    WHERE r.verified_at IS NULL AND EXISTS (SELECT FROM ledger.poll_schedule q WHERE q.receipt_id = r.receipt_id)) thing
WHERE NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id);
COMMENT ON VIEW ledger.unasked IS
    'Subscriptions and purchases that Apple is not asked about: notifications name them and no receipt polls them, or the app '
    'has no server key and only transactions show them';
