-- Orders: returns the one-time purchases of the ordered product in receipts that devices sent with proofs for orders, each
-- with such an order and its customer, as the name means now: for the orders that are payable with those for which
-- receipts ($1) were sent, and with those that purchases pay ($2 apps, $3 environments, $4 ids, $5 products), which Apple took
-- back. No one owns them, or by an upload or a pointer alone, and no token names another order or customer.
SELECT DISTINCT l.purchase_id, x.receipt_id, n.id::text AS order_id, head.customer_id, head.name
FROM unnest(ledger.payable_orders('{}', '{}', ARRAY(
    SELECT x.receipt_id FROM ledger.order_receipt x WHERE x.receipt_id = ANY($1::bigint[])
    UNION
    SELECT x.receipt_id
    FROM unnest($2::int[], $3::text[], $4::text[], $5::text[])
        AS k(app_id, environment, original_transaction_id, product_id)
    CROSS JOIN LATERAL (
        SELECT p.purchase_id FROM ledger.purchase p
        WHERE p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
          AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT o.order_id, o.state FROM ledger.purchase_order o WHERE o.purchase_id = p.purchase_id OFFSET 0) o
    CROSS JOIN LATERAL (
        SELECT x.receipt_id, x.is_proved FROM ledger.order_receipt x WHERE x.order_id = o.order_id OFFSET 0) x
    WHERE o.state = 'paid' AND x.is_proved))) AS n(id)
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
