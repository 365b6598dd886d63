-- Erase: removes what is personal in the orders of customers ($1) at $2: the price shown, the device, the key, the
-- account token, what devices reported, which receipts were sent for them, and Idempotency-Keys. Cancels open orders.
WITH theirs AS MATERIALIZED (
    SELECT o.order_id, o.state IN ('created', 'purchasing', 'deferred') AS is_open FROM ledger.purchase_order o
    WHERE o.customer_id = ANY($1::bigint[]) ORDER BY o.order_id FOR UPDATE
), codes AS (
    UPDATE ledger.order_change c SET code = NULL
    WHERE c.order_id IN (SELECT t.order_id FROM theirs t) AND c.code IS NOT NULL
), receipts AS (
    DELETE FROM ledger.order_receipt x WHERE x.order_id IN (SELECT t.order_id FROM theirs t)
), requests AS (
    DELETE FROM ledger.order_request r WHERE r.order_id IN (SELECT t.order_id FROM theirs t)
)
UPDATE ledger.purchase_order o
SET price_milliunits = NULL, currency = NULL, device = NULL, sealed_key = NULL, app_account_token = gen_random_uuid(),
    state = CASE WHEN t.is_open THEN 'cancelled' ELSE o.state END,
    cause = CASE WHEN t.is_open THEN 'erased' ELSE o.cause END,
    changed_at = CASE WHEN t.is_open THEN $2::timestamptz ELSE o.changed_at END
FROM theirs t WHERE o.order_id = t.order_id
