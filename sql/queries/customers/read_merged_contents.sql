-- Split: returns the subscriptions and purchases that customer $2 owns only since customer $1's name became theirs.
SELECT o.subscription_id, o.purchase_id
FROM ledger.ownership o
WHERE o.customer_id = $2::bigint AND o.cause IN ('merge', 'pointer') AND upper_inf(o.known) AND upper_inf(o.valid) AND EXISTS (
    SELECT FROM ledger.ownership f
    WHERE (f.subscription_id = o.subscription_id OR f.purchase_id = o.purchase_id) AND f.customer_id = $1::bigint
      AND upper_inf(f.known) AND upper(f.valid) = lower(o.valid))
