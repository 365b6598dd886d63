-- Orders: returns the one-time purchases of the ordered product in receipts that devices sent with proofs for orders, each
-- with such an order and its customer, as the name means now: for the orders that are payable with those for which
-- receipts ($1) were sent. No one owns them, or by an upload or a pointer alone, and no token names another order or
-- customer.
SELECT DISTINCT l.purchase_id, n.id::text AS order_id, head.customer_id, head.name
FROM unnest(ledger.payable_orders('{}', '{}', ARRAY(
    SELECT DISTINCT x.receipt_id FROM ledger.order_receipt x WHERE x.receipt_id = ANY($1::bigint[])))) AS n(id)
CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id OFFSET 0) r
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
CROSS JOIN LATERAL (
    SELECT x.receipt_id FROM ledger.order_receipt x WHERE x.order_id = n.id AND x.is_proved OFFSET 0) x
CROSS JOIN LATERAL (
    SELECT l.purchase_id FROM ledger.receipt_purchase l WHERE l.receipt_id = x.receipt_id OFFSET 0) l
CROSS JOIN LATERAL (
    SELECT FROM ledger.purchase p
    WHERE p.purchase_id = l.purchase_id AND p.product_id = r.product_id AND p.version > 0
      AND (p.app_account_token IS NULL OR ledger.account_token(p.app_account_token) = r.app_account_token) OFFSET 0) p
WHERE NOT EXISTS (
    SELECT FROM ledger.ownership w
    WHERE w.purchase_id = l.purchase_id AND upper_inf(w.known) AND upper_inf(w.valid)
      AND (w.cause IN ('upload', 'pointer')) IS NOT TRUE)
