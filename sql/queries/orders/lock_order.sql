-- Orders: locks order $1, so that uploads for it wait for each other until the end of the transaction.
SELECT o.order_id::text AS order_id FROM ledger.purchase_order o WHERE o.order_id = $1::text::uuid FOR NO KEY UPDATE
