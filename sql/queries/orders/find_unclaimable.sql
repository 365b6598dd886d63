-- Orders: returns which purchases ($1) and subscriptions ($2) no proof may claim: something of it paid an order or was
-- acknowledged, or its owner has it by more than an upload.
SELECT n.id AS purchase_id, NULL::bigint AS subscription_id
FROM unnest($1::bigint[]) AS n(id)
WHERE EXISTS (SELECT FROM ledger.purchase_order o WHERE o.purchase_id = n.id)
   OR EXISTS (SELECT FROM ledger.delivery_now d WHERE d.purchase_id = n.id AND d.state = 'acknowledged')
   OR EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.purchase_id = n.id AND upper_inf(w.known) AND upper_inf(w.valid)
          AND (w.cause IN ('upload', 'pointer')) IS NOT TRUE)
UNION ALL
SELECT NULL, n.id
FROM unnest($2::bigint[]) AS n(id)
WHERE EXISTS (SELECT FROM ledger.purchase_order o WHERE o.subscription_id = n.id)
   OR EXISTS (SELECT FROM ledger.delivery_now d WHERE d.subscription_id = n.id AND d.state = 'acknowledged')
   OR EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.subscription_id = n.id AND upper_inf(w.known) AND upper_inf(w.valid)
          AND (w.cause IN ('upload', 'pointer')) IS NOT TRUE)
