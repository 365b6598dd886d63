-- set as_known_at=2026-03-25Z
-- A's first charge of 8 January is refunded on 20 January. A's trial stays converted and is shown apart.
UPDATE ledger.period SET cancelled_at = '2026-01-20Z', cancellation_recorded_at = '2026-01-20 00:01Z'
WHERE web_order_line_item_id = 'A1';
