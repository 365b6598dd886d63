-- Rebuild: counts the subscriptions and purchases of app $1 and of the receipts of customer $2, and the customers with
-- stored entitlements (nulls: all).
SELECT (SELECT count(*) FROM ledger.subscription s JOIN ledger.app a USING (app_id)
        WHERE s.version > 0 AND ($1::text IS NULL OR a.bundle_id = $1::text) AND ($2::text IS NULL OR EXISTS (
            SELECT FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
            JOIN ledger.customer c USING (customer_id)
            WHERE l.subscription_id = s.subscription_id AND c.name = $2::text)))
     + (SELECT count(*) FROM ledger.purchase p JOIN ledger.app a USING (app_id)
        WHERE p.version > 0 AND ($1::text IS NULL OR a.bundle_id = $1::text) AND ($2::text IS NULL OR EXISTS (
            SELECT FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
            JOIN ledger.customer c USING (customer_id)
            WHERE l.purchase_id = p.purchase_id AND c.name = $2::text)))
     + (SELECT count(*) FROM ledger.current_entitlements v
        WHERE ($1::text IS NULL OR v.app_id = (SELECT a.app_id FROM ledger.app a WHERE a.bundle_id = $1::text))
          AND ($2::text IS NULL OR v.customer_id IN (
            SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.name = $2::text))) AS things
