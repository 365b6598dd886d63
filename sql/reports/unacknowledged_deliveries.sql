-- Deliveries that were not acknowledged, oldest first
-- Variables: bundle_id, environment, minutes.
-- Deliveries that have been due for more than minutes (5): the customer paid, or got a refund, and your service has not
-- carried it out. Odd turns give, even turns take back. balance is what the customer has of the credit by deliveries
-- that were acknowledged.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?minutes} \else \set minutes 5 \endif
SELECT d.bundle_id, d.environment, d.delivery_id, d.customer, d.product_id, d.kind, d.turn, d.reason, d.credit, d.units,
       d.balance, d.order_id, d.transaction_id, d.created_at
FROM perennial.delivery_due d
WHERE d.created_at < now() - :'minutes'::int * interval '1 minute'
  AND d.environment = perennial.known_environment(:'environment')
  AND (:'bundle_id' = '' OR d.bundle_id = perennial.known_app(:'bundle_id'))
ORDER BY d.created_at, d.position;
