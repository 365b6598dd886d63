-- Deliveries: locks a product whose earlier purchases a catalog released, if another transaction does not work on it.
SELECT r.app_id, r.product_id, r.after_purchase, r.after_subscription FROM ledger.delivery_release r
ORDER BY r.app_id, r.product_id LIMIT 1 FOR UPDATE SKIP LOCKED
