-- Bea got 300 gold with P, which was refunded, and her 300 are still to be taken back; what Q gives is due, and what
-- became due a minute ago is left out. Eve's was skipped, and a delivery of the sandbox is no production.
INSERT INTO ledger.delivery (
    position, app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, purchase_id,
    transaction_id, original_transaction_id, created_at, skipped_at, skipped_by, skip_reason)
SELECT d.position, c.app_id, d.environment::ledger.environment, c.customer_id, 'gold', 'consumable', 'gold', d.units, d.turn,
       d.reason, p.purchase_id, d.transaction, d.transaction, d.created_at, d.skipped_at, d.skipped_by, d.skip_reason
FROM (VALUES
    (1, 'bea', 'Production', 'P', 300, 1, 'purchase', '2026-02-03Z'::timestamptz, NULL::timestamptz, NULL,
     NULL),
    (2, 'bea', 'Production', 'P', 300, 2, 'refund', '2026-03-04Z', NULL, NULL, NULL),
    (3, 'bea', 'Production', 'Q', 100, 1, 'purchase', '2026-02-10Z', NULL, NULL, NULL),
    (4, 'eve', 'Production', 'Q', 100, 3, 'transfer', '2026-02-10Z', '2026-02-11Z', 'kim', 'a test'),
    (5, 'eve', 'Sandbox', 'Q', 100, 5, 'transfer', '2026-02-10Z', NULL, NULL, NULL),
    (6, 'eve', 'Production', 'Q', 100, 7, 'transfer', now() - interval '1 minute', NULL, NULL, NULL)
) AS d(position, customer, environment, transaction, units, turn, reason, created_at, skipped_at, skipped_by,
       skip_reason)
JOIN ledger.customer c ON c.name = d.customer
JOIN ledger.purchase p ON p.original_transaction_id = d.transaction
ORDER BY d.position;
INSERT INTO ledger.due_delivery (app_id, environment, position, delivery_id)
SELECT app_id, environment, position, delivery_id FROM ledger.delivery WHERE position > 1 AND skip_reason IS NULL;
