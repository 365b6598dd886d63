-- Returns what acknowledged deliveries gave customer $2 of app $1, by any of the customer's names, of each credit, less
-- what they took back.
WITH head AS MATERIALIZED (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.app a JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
    WHERE a.bundle_id = $1::text
)
SELECT d.environment::text AS environment, d.credit,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END)::bigint AS units
FROM (SELECT h.customer_id FROM head h
      UNION ALL
      SELECT c.customer_id FROM head h JOIN ledger.customer c ON c.merged_into = h.customer_id) name
JOIN ledger.delivery d USING (customer_id)
WHERE d.credit IS NOT NULL AND d.skip_reason IS NULL
  AND NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id)
GROUP BY d.environment, d.credit
ORDER BY d.environment, d.credit
