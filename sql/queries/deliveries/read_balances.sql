-- Deliveries: returns what acknowledged deliveries gave customers ($1) of each credit, less what they took back.
SELECT d.credit, d.environment::text AS environment,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END)::bigint AS units
FROM ledger.delivery d
WHERE d.customer_id = ANY($1::bigint[]) AND d.credit IS NOT NULL AND d.skip_reason IS NULL
  AND NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id)
GROUP BY d.credit, d.environment
ORDER BY d.environment, d.credit
