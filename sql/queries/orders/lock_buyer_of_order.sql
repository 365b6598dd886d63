-- Orders: makes the new receipts of the customer of order $1 wait for each other until the end of the transaction.
SELECT pg_advisory_xact_lock(
    hashtext('ledger.new_receipts'), (COALESCE(c.merged_into, c.customer_id) % 2147483647)::int)
FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
WHERE o.order_id = $1::text::uuid
