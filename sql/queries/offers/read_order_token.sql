-- Offers: returns the account token of order $3 of app $1, and what it is for; no row: it is no order of customer $2.
SELECT o.product_id, o.app_account_token::text AS app_account_token, o.paid_at IS NOT NULL AS is_paid
FROM ledger.app a
JOIN ledger.purchase_order o ON o.app_id = a.app_id AND o.order_id = $3::text::uuid
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer n ON n.app_id = a.app_id AND n.name = $2::text
WHERE a.bundle_id = $1::text
  AND COALESCE(c.merged_into, c.customer_id) = COALESCE(n.merged_into, n.customer_id)
