-- set as_known_at=2026-03-25Z
-- A's first charge of 8 January is refunded on 20 January, A's second one of 8 February too, which is not the first.
UPDATE ledger.period SET cancelled_at = '2026-02-20Z', cancellation_recorded_at = '2026-02-20 00:01Z'
WHERE web_order_line_item_id IN ('A1', 'A2');
