-- Eve sent bea's receipt too and took B over in March 2026, longer than 30 days ago.
INSERT INTO ledger.upload (receipt_id, customer_id, uploaded_at, imported)
SELECT r.receipt_id, c.customer_id, '2026-03-01Z', false FROM ledger.receipt r CROSS JOIN ledger.customer c
WHERE r.data = 'bea' AND c.name = 'eve';
UPDATE ledger.ownership o SET customer_id = c.customer_id FROM ledger.subscription s, ledger.customer c
WHERE o.subscription_id = s.subscription_id AND s.original_transaction_id = 'B' AND c.name = 'eve';
WITH new AS (
    INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                              occurred_at, as_of, recorded_at)
    SELECT gen_random_uuid(), app_id, environment, subscription_id, 9, 0, 'ownership.transferred', 'monthly', '2026-03-01Z',
           '2026-03-01Z', '2026-03-01Z'
    FROM ledger.subscription WHERE original_transaction_id = 'B' RETURNING event_id)
INSERT INTO ledger.event_feed (position, event_id) SELECT 1000, event_id FROM new;
-- Before, bea's subscription was only pointed at, which was no transfer.
WITH new AS (
    INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                              occurred_at, as_of, recorded_at, detail)
    SELECT gen_random_uuid(), app_id, environment, subscription_id, 8, 0, 'ownership.transferred', 'monthly', '2026-02-01Z',
           '2026-02-01Z', '2026-02-01Z', '{"from_pointer": true}'
    FROM ledger.subscription WHERE original_transaction_id = 'B' RETURNING event_id)
INSERT INTO ledger.event_feed (position, event_id) SELECT 999, event_id FROM new;
