-- set as_known_at=2026-03-25Z
-- On 22 March Apple shows E under Z. The charge succeeds there on the 24th. E has the event of the failure of the 20th:
-- the report recovers it after 4 days. The report leaves the failure of February as it was.
SELECT public.move('E', 'Z', '2026-03-22Z');
SELECT public.report('E', 5, 'subscription.expired', 'monthly', '2026-03-22Z', '2026-03-22Z', '{"moved_to": "Z"}');
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           is_upgraded, is_trial, is_intro, ownership, path, recorded_at)
SELECT public.id('Z'), 'E3', 'monthly', 1, '2026-03-24Z', '2026-04-24Z', false, false, false, 'PURCHASED', 'row', '2026-03-24Z';
INSERT INTO ledger.transaction_alias (period_id, transaction_id)
SELECT period_id, 'ZE3' FROM ledger.period WHERE web_order_line_item_id = 'E3';
SELECT public.report('Z', 2, 'subscription.recovered', 'monthly', '2026-03-24Z', '2026-03-24Z', '{"transaction_id": "ZE3"}');
