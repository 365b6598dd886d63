-- Locks the customers ($1), and those with a provisional entitlement of receipts ($2), whose entitlements a transaction
-- changes; returns them, and whether their names mean another customer by now. So two changes to one customer are computed
-- one after the other.
SELECT c.customer_id, c.merged_into IS NOT NULL AS is_merged FROM ledger.customer c
WHERE c.customer_id IN (
    SELECT unnest($1::bigint[])
    UNION
    SELECT p.customer_id FROM ledger.provisional p WHERE p.receipt_id = ANY($2::bigint[]))
ORDER BY c.customer_id FOR NO KEY UPDATE
