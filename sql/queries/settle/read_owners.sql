-- Settlement: returns the present owners of subscriptions ($1) and purchases ($2) with the cause, and the transfers of the
-- last 30 days that count: neither manual nor from one who only pointed at it.
SELECT o.ownership_id, o.subscription_id, o.purchase_id, o.customer_id, c.name, o.cause,
       (SELECT count(*) FROM ledger.event e
        WHERE (e.subscription_id = o.subscription_id OR e.purchase_id = o.purchase_id)
          AND e.kind = 'ownership.transferred' AND e.recorded_at > now() - interval '30 days'
          AND NOT (e.detail ?| ARRAY['by_hand', 'from_pointer'])) AS transfers
FROM ledger.ownership o
JOIN ledger.customer c USING (customer_id)
WHERE (o.subscription_id = ANY($1::bigint[]) OR o.purchase_id = ANY($2::bigint[]))
  AND upper_inf(o.known) AND upper_inf(o.valid)
ORDER BY o.ownership_id
FOR NO KEY UPDATE OF o
