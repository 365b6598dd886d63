-- Polling: stores the polling receipts of subscriptions ($1 rows, $2 receipts, $3 next checks) and purchases ($4, $5
-- and $6 likewise) that have no other change.
WITH subscription AS (
    UPDATE ledger.subscription s SET polled_by = n.polled_by, next_check_at = n.next_check_at
    FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS n(subscription_id, polled_by, next_check_at)
    WHERE s.subscription_id = n.subscription_id
)
UPDATE ledger.purchase p SET polled_by = n.polled_by, next_check_at = n.next_check_at
FROM unnest($4::bigint[], $5::bigint[], $6::timestamptz[]) AS n(purchase_id, polled_by, next_check_at)
WHERE p.purchase_id = n.purchase_id
