-- set from=2023-11-01
-- set until=2023-12-01
-- Groups of a monthly product from 6 November to 6 December. K has eight seats at 38.42; that three of them were refunded was
-- learnt on the 26th: 38.42 * 5 / 8 = 24.013 from then on. L has the same, and four more at 17.96 from the 11th to the 21st, when
-- they were refunded as a whole: 56.38, then 38.42 again. M has four at 19.96 and one more at 4.99 from the 11th on, 24.95; that
-- one of the four was refunded was learnt on the 16th: 19.96, as at first. N has six at 29.94 and three more at 14.97 from the
-- 11th on; the six were refunded as a whole on the 16th: 14.97. O is six, three more from the 11th to the 21st, at the
-- catalog's 10 each: 60, 90, 60. All of P, six at 29.94 and three more at 14.97 on the 11th, was refunded on the 16th. Of Q two of
-- six were refunded when it was seen first, on the 21st: 29.94 until then, and 29.94 * 4 / 6 = 19.96 since.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L,M,N,O,P,Q}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, cancelled_at,
                           cancellation_reason, is_upgraded, is_trial, is_intro, ownership, price_milliunits, price_currency,
                           sale, path, recorded_at, cancellation_recorded_at, facts_recorded_at)
SELECT public.id(p.otid), p.line, 'monthly', p.seats, p.since::timestamptz, '2023-12-06Z', p.refunded::timestamptz,
       CASE WHEN p.refunded IS NOT NULL THEN '0' END, false, false, false, 'PURCHASED', p.price,
       CASE WHEN p.price IS NOT NULL THEN 'USD' END,
       jsonb_build_object('plan', 'BILLED_UPFRONT', 'seats', p.seats, 'revoked_seats', p.revoked, 'one_of_several', true), 'row',
       COALESCE(p.seen, p.since)::timestamptz, p.learnt::timestamptz, p.learnt::timestamptz
FROM (VALUES
    ('K', 'k', 8, 38420, '2023-11-06Z', NULL, 3, '2023-11-26Z', NULL),
    ('L', 'l', 8, 38420, '2023-11-06Z', NULL, 0, NULL, NULL),
    ('L', 'l+', 4, 17960, '2023-11-11Z', '2023-11-21Z', 4, '2023-11-22Z', NULL),
    ('M', 'm', 4, 19960, '2023-11-06Z', NULL, 1, '2023-11-16Z', NULL),
    ('M', 'm+', 1, 4990, '2023-11-11Z', NULL, 0, NULL, NULL),
    ('N', 'n', 6, 29940, '2023-11-06Z', '2023-11-16Z', 6, '2023-11-17Z', NULL),
    ('N', 'n+', 3, 14970, '2023-11-11Z', NULL, 0, NULL, NULL),
    ('O', 'o', 6, NULL, '2023-11-06Z', NULL, 0, NULL, NULL),
    ('O', 'o+', 3, NULL, '2023-11-11Z', '2023-11-21Z', 3, '2023-11-22Z', NULL),
    ('P', 'p', 6, 29940, '2023-11-06Z', '2023-11-16Z', 6, '2023-11-17Z', NULL),
    ('P', 'p+', 3, 14970, '2023-11-11Z', '2023-11-16Z', 3, '2023-11-17Z', NULL),
    ('Q', 'q', 6, 29940, '2023-11-06Z', NULL, 2, '2023-11-21Z', '2023-11-21Z')
) AS p (otid, line, seats, price, since, refunded, revoked, learnt, seen);
INSERT INTO ledger.period_history (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, is_upgraded,
                                   is_trial, is_intro, ownership, price_milliunits, price_currency, sale, recorded_at)
SELECT p.period_id, p.subscription_id, tstzrange(p.recorded_at, p.facts_recorded_at), p.product_id, p.quantity, p.purchased_at,
       p.expires_at, false, false, false, p.ownership, p.price_milliunits, p.price_currency, p.sale || '{"revoked_seats": 0}',
       p.recorded_at
FROM ledger.period p WHERE p.web_order_line_item_id IN ('k', 'l+', 'm', 'n', 'o+', 'p', 'p+');
SELECT public.tell(otid, '2023-11-22Z', '2023-11-06|2023-12-06|active||monthly||', '2023-12-06||expired|voluntary|monthly||')
FROM unnest('{K,L,M,N,O,Q}'::text[]) otid;
SELECT public.tell('P', '2023-11-17Z', '2023-11-06|2023-11-16|active||monthly||', '2023-11-16||revoked|refund|monthly||');
