-- Counts the receipts of customer $2 of app $1 that Apple never vouched for; also the end of the operator's provisional
-- access.
SELECT count(*) AS receipts, max((
           SELECT max(p.until) FROM ledger.provisional p
           WHERE p.customer_id = u.customer_id AND p.receipt_id = u.receipt_id AND p.until > now()
             AND NOT EXISTS (
                 SELECT FROM ledger.provisional later
                 WHERE later.customer_id = p.customer_id AND later.receipt_id = p.receipt_id
                   AND later.product_id = p.product_id AND later.stated_at > p.stated_at))) AS provisional_until
FROM ledger.app a
JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
JOIN ledger.upload u USING (customer_id)
JOIN ledger.receipt r USING (receipt_id)
WHERE a.bundle_id = $1::text AND r.verified_at IS NULL
