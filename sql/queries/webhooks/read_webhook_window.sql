-- Worker: returns the events for webhook $1 after position $2 up to $3, in order, at most $4: with their messages, but those
-- of streams that wait.
WITH found AS MATERIALIZED (
    SELECT f.position, e.subscription_id, e.purchase_id, e.customer_id
    FROM ledger.webhook w
    JOIN ledger.event_feed f ON f.position > $2::bigint AND f.position <= $3::bigint
    JOIN ledger.event e USING (event_id)
    WHERE w.webhook_id = $1::int AND ledger.webhook_takes(w, e)
    ORDER BY f.position LIMIT $4::int
), placed AS MATERIALIZED (
    SELECT n.*, EXISTS (SELECT FROM ledger.webhook_line l
                        WHERE l.webhook_id = $1::int AND l.stream_of = n.stream_of AND l.stream_id = n.stream_id) AS waits
    FROM (SELECT f.position, COALESCE(f.subscription_id, f.purchase_id, f.customer_id) AS stream_id,
                 CASE WHEN f.subscription_id IS NOT NULL THEN 'subscription' WHEN f.purchase_id IS NOT NULL THEN 'purchase'
                      ELSE 'customer' END AS stream_of
          FROM found f) n
)
SELECT p.position, p.stream_of, p.stream_id, p.waits, m.identity, m.body
FROM placed p
LEFT JOIN ledger.webhook_messages(ARRAY(SELECT n.position FROM placed n WHERE NOT n.waits)) m USING (position)
ORDER BY p.position
