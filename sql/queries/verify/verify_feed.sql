-- Verify: returns positions of the feed after $1 up to $2 that are empty, lie beyond the newest, or precede an earlier
-- event of their subscription or purchase.
SELECT place.position AS key, a.bundle_id, e.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, p.product_id,
       NULL::bigint AS receipt_id, format('position %s %s', place.position, trouble.detail) AS detail
FROM generate_series($1::bigint + 1, $2::bigint) AS place (position)
LEFT JOIN ledger.event_feed f USING (position)
LEFT JOIN ledger.event e USING (event_id)
LEFT JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN LATERAL (
    SELECT b.event_id FROM ledger.event b
    WHERE b.subscription_id = e.subscription_id AND (b.version, b.ordinal) < (e.version, e.ordinal)
    ORDER BY b.version DESC, b.ordinal DESC LIMIT 1) of_subscription ON e.subscription_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT b.event_id FROM ledger.event b
    WHERE b.purchase_id = e.purchase_id AND (b.version, b.ordinal) < (e.version, e.ordinal)
    ORDER BY b.version DESC, b.ordinal DESC LIMIT 1) of_purchase ON e.purchase_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT b.event_id FROM ledger.event b
    WHERE b.customer_id = e.customer_id AND b.subscription_id IS NULL AND b.purchase_id IS NULL
      AND (b.version, b.ordinal) < (e.version, e.ordinal)
    ORDER BY b.version DESC, b.ordinal DESC LIMIT 1) of_customer ON e.subscription_id IS NULL AND e.purchase_id IS NULL
CROSS JOIN LATERAL (
    SELECT COALESCE(of_subscription.event_id, of_purchase.event_id, of_customer.event_id) AS event_id) before
LEFT JOIN ledger.event_feed earlier ON earlier.event_id = before.event_id
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN f.event_id IS NULL THEN 'is empty'
        WHEN place.position > (SELECT n.position FROM ledger.feed n) THEN 'lies behind the newest'
        WHEN before.event_id IS NOT NULL AND COALESCE(earlier.position > place.position, true)
            THEN 'comes before an earlier change of the same'
        END AS detail) trouble
WHERE trouble.detail IS NOT NULL
ORDER BY place.position
