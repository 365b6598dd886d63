-- set from=2025-11-23
-- set until=2025-11-26
-- A group of a product that the catalog does not know: 26 seats at 116.267 from 2 November to 2 December, and 8 more at 38.423 on
-- the 24th. Their price is one of a month too, though eight days of it are left: 154.690. G of the history pays 8 of its 96.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', 'K' FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           ownership, price_milliunits, price_currency, sale, path, recorded_at)
SELECT public.id('K'), 'group', p.seats, p.since::timestamptz, '2025-12-02Z', false, false, false, 'PURCHASED', p.price, 'USD',
       jsonb_build_object('plan', 'BILLED_UPFRONT', 'seats', p.seats, 'one_of_several', true), 'row', p.since::timestamptz
FROM (VALUES (26, '2025-11-02Z', 116267), (8, '2025-11-24 14:00Z', 38423)) AS p (seats, since, price);
SELECT public.tell('K', '2025-11-24 14:00Z', '2025-11-02|2025-12-02|active||group||', '2025-12-02||expired|voluntary|group||');
