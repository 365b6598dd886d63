-- Intake: counts the new receipts of the last hour that count against the hourly limit of customer $1, or of order $2 and its
-- customer: those that the customer uploaded, and those that were sent for orders of theirs; also the seconds until the oldest
-- is an hour old. The first new receipt of each order does not count.
WITH buyer AS MATERIALIZED (
    SELECT $1::bigint AS customer_id WHERE $1::bigint IS NOT NULL
    UNION ALL
    SELECT COALESCE(c.merged_into, c.customer_id)
    FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
    WHERE o.order_id = $2::text::uuid
), fresh AS (
    SELECT r.receipt_id, r.received_at
    FROM buyer b
    JOIN ledger.upload u ON u.customer_id = b.customer_id AND NOT u.imported
    JOIN ledger.receipt r USING (receipt_id)
    WHERE r.received_at > clock_timestamp() - interval '1 hour'
    UNION
    SELECT r.receipt_id, r.received_at
    FROM buyer b
    CROSS JOIN LATERAL (
        SELECT b.customer_id
        UNION ALL
        SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = b.customer_id OFFSET 0) c
    JOIN ledger.purchase_order o ON o.customer_id = c.customer_id AND o.created_at > now() - interval '180 days'
    JOIN ledger.order_receipt x USING (order_id)
    JOIN ledger.receipt r USING (receipt_id)
    WHERE x.is_new AND x.sent_at > clock_timestamp() - interval '1 hour'
      AND r.received_at > clock_timestamp() - interval '1 hour'
)
SELECT count(*) AS receipts,
       GREATEST(1, ceil(extract(epoch FROM min(n.received_at) + interval '1 hour' - clock_timestamp())))::bigint
           AS seconds_left
FROM fresh n
WHERE NOT EXISTS (
    SELECT FROM ledger.order_receipt x
    WHERE x.receipt_id = n.receipt_id AND x.is_new AND NOT EXISTS (
        SELECT FROM ledger.order_receipt e
        WHERE e.order_id = x.order_id AND e.is_new AND e.receipt_id < x.receipt_id))
