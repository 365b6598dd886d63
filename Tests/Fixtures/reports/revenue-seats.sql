-- set from=2023-01-01
-- set until=2023-05-01
-- A group of six seats for 29.442, bought on 10 January. On 5 February two of them came back, which was learnt then: 9.814; on
-- 5 March one more: 4.907, so that three are half of the price. On 4 April all were refunded: the other half, 14.721. V is six
-- seats of a price that cannot be read, of which one came back on 6 February: neither amount is known, and none is made from
-- the catalog's 10 a month. W: the same as V without a word of a price: the catalog's 6 * 10.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{s,v,w}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, cancellation_reason,
                           is_upgraded, is_trial, is_intro, ownership, price_milliunits, price_currency, sale, path,
                           recorded_at, cancellation_recorded_at, facts_recorded_at)
SELECT subscription_id, 'monthly', 6, '2023-01-10Z', '2023-04-10Z', p.cancelled::timestamptz, p.reason, false, false, false,
       'PURCHASED', p.price, p.currency, p.sale::jsonb, 'row', '2023-01-10Z', p.learnt::timestamptz, p.learnt::timestamptz
FROM (VALUES
    ('s', '2023-04-04Z', '0', 29442, 'USD', '{"seats": 6, "revoked_seats": 6, "revocation_type": "REFUND_FULL"}', '2023-04-05Z'),
    ('v', NULL, NULL, NULL, 'USD', '{"seats": 6, "revoked_seats": 1}', '2023-02-06Z'),
    ('w', NULL, NULL, NULL, NULL, '{"seats": 6}', NULL)
) AS p (otid, cancelled, reason, price, currency, sale, learnt)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.period_history (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, is_upgraded,
                                   is_trial, is_intro, ownership, price_milliunits, price_currency, sale, recorded_at,
                                   cancellation_recorded_at)
SELECT p.period_id, subscription_id, tstzrange(h.since::timestamptz, h.until::timestamptz), p.product_id, p.quantity, p.purchased_at,
       p.expires_at, false, false, false, p.ownership, p.price_milliunits, p.price_currency, h.sale::jsonb, p.recorded_at,
       h.learnt::timestamptz
FROM (VALUES
    ('2023-01-10Z', '2023-02-05Z', '{"seats": 6}', NULL),
    ('2023-02-05Z', '2023-03-05Z', '{"seats": 6, "revoked_seats": 2}', '2023-02-05Z'),
    ('2023-03-05Z', '2023-04-05Z', '{"seats": 6, "revoked_seats": 3}', '2023-03-05Z')) AS h (since, until, sale, learnt)
CROSS JOIN ledger.period p JOIN ledger.subscription USING (subscription_id) WHERE original_transaction_id = 's';
