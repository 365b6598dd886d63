-- Orders: counts the new receipts of the last hour that count against the hourly limit of order $1 and its customer: those
-- of the order beyond its first $2, and those that the customer uploaded; also the seconds until the oldest is an hour old.
WITH buyer AS MATERIALIZED (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
    WHERE o.order_id = $1::text::uuid
), counted AS (
    (SELECT x.sent_at AS at FROM ledger.order_receipt x
     WHERE x.order_id = $1::text::uuid AND x.is_new
     ORDER BY x.sent_at, x.receipt_id OFFSET $2::int)
    UNION ALL
    SELECT r.received_at FROM buyer b
    JOIN ledger.upload u ON u.customer_id = b.customer_id AND NOT u.imported
    JOIN ledger.receipt r USING (receipt_id)
)
SELECT count(*) AS receipts,
       GREATEST(1, ceil(extract(epoch FROM min(n.at) + interval '1 hour' - clock_timestamp())))::bigint AS seconds_left
FROM counted n WHERE n.at > clock_timestamp() - interval '1 hour'
