-- Intake: stores the provisional access that lines promise until Apple's answer ($1 receipts, $2 customers, $3
-- products, $4 ends, $5 environments), at most 90 days from the first promise. Stores nothing for a receipt that Apple
-- vouched for, and no repetition of an earlier promise.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), given AS (
    SELECT DISTINCT ON (n.receipt_id, n.customer_id, n.product_id) n.*
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::text[]) WITH ORDINALITY
        AS n(receipt_id, customer_id, product_id, until, environment, place)
    ORDER BY n.receipt_id, n.customer_id, n.product_id, n.place DESC
), bounded AS (
    SELECT g.customer_id, g.receipt_id, g.product_id, clock.at AS stated_at, b.since,
           GREATEST(b.since, LEAST(g.until, b.since + interval '90 days')) AS until, g.environment, earlier.until AS stated
    FROM given g CROSS JOIN clock
    JOIN ledger.receipt r ON r.receipt_id = g.receipt_id AND r.verified_at IS NULL
    LEFT JOIN LATERAL (
        SELECT p.since, p.until FROM ledger.provisional p
        WHERE p.customer_id = g.customer_id AND p.receipt_id = g.receipt_id AND p.product_id = g.product_id
        ORDER BY p.stated_at DESC LIMIT 1) earlier ON true
    CROSS JOIN LATERAL (SELECT COALESCE(earlier.since, clock.at) AS since) b
)
INSERT INTO ledger.provisional (customer_id, receipt_id, product_id, stated_at, since, until, environment)
SELECT customer_id, receipt_id, product_id, stated_at, since, until, environment::ledger.environment
FROM bounded WHERE until <> COALESCE(stated, since)
ON CONFLICT DO NOTHING
RETURNING customer_id
