-- For status: apps without a server key, of whose newest $1 periods together some look like payments of a yearly term, and how
-- many. verifyReceipt says nothing of terms.
SELECT a.bundle_id, count(*) AS periods
FROM (SELECT * FROM ledger.period ORDER BY period_id DESC LIMIT $1::int) p
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
JOIN ledger.product d ON d.app_id = s.app_id AND d.product_id = p.product_id
WHERE ledger.looks_monthly(d.period, p.purchased_at, p.expires_at) AND p.sale IS NULL AND NOT p.is_trial AND NOT p.is_intro
  AND num_nonnulls(p.promotional_offer_id, p.offer_code_ref_name) = 0 AND NOT ledger.is_shared(p.ownership)
  AND NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id)
GROUP BY a.bundle_id
ORDER BY a.bundle_id
