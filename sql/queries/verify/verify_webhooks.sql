-- Verify: returns webhooks after $1 up to $2 that are beyond the feed, or one of whose streams waits where it has no event,
-- or beyond the webhook's position.
SELECT w.webhook_id::bigint AS key, a.bundle_id, NULL::text AS environment, NULL::text AS original_transaction_id,
       NULL::text AS product_id, NULL::bigint AS receipt_id, format('webhook %s %s', w.webhook_id, trouble.detail) AS detail
FROM ledger.webhook w
LEFT JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL (
    SELECT format('is at position %s, beyond the feed', w.position) AS detail FROM ledger.feed f WHERE w.position > f.position
    UNION ALL
    (SELECT format('has a stream that waits at position %s, %s', l.position, CASE
                WHEN l.position > w.position THEN 'beyond its own' ELSE 'where it has no event' END)
     FROM ledger.webhook_line l
     LEFT JOIN ledger.event_feed f USING (position)
     LEFT JOIN ledger.event e USING (event_id)
     WHERE l.webhook_id = w.webhook_id AND (l.position > w.position OR l.stream_id IS DISTINCT FROM CASE l.stream_of
         WHEN 'subscription' THEN e.subscription_id WHEN 'purchase' THEN e.purchase_id
         ELSE CASE WHEN num_nonnulls(e.subscription_id, e.purchase_id) = 0 THEN e.customer_id END END)
     LIMIT 1)) trouble
WHERE w.webhook_id > $1::bigint AND w.webhook_id <= $2::bigint
ORDER BY w.webhook_id
