-- set at=2026-03-25Z
-- Payments of terms of a yearly product, at 9 each. K made its fourth and wants a monthly plan of another product after the
-- term: its next payment, on 2 April, is still one of the yearly product. L made its twelfth and wants the same: monthly, at the
-- catalog's 12, on 3 April. M made its twelfth, and a year paid at once follows on 4 April: its price is not known. N made its
-- fourth and wants a year paid at once after the term: 9 on 5 April. O cancelled, and pays on: 9 on 6 April. H on 1 April at 12
-- and B on 10 April at 9 EUR, as always.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, group_id, version, as_of, checked_at, recorded_at,
                                 will_renew, next_payment, renews_to_product_id, flags, expires_at, sale)
SELECT app_id, 'Production', s.otid, 'g', 1, '2026-03-24Z', '2026-03-24Z', '2026-03-24Z', s.will, true, s.product,
       CASE WHEN s.changes THEN '{change_scheduled}'::text[] ELSE '{}' END, s.until::timestamptz,
       jsonb_build_object('plan', 'monthly', 'payment_number', s.number, 'payments', 12)
FROM ledger.app CROSS JOIN (VALUES
    ('K', true, 'monthly', true, '2026-04-02Z', 4), ('L', true, 'monthly', true, '2026-04-03Z', 12),
    ('M', true, 'yearly', true, '2026-04-04Z', 12), ('N', true, 'yearly', true, '2026-04-05Z', 4),
    ('O', false, NULL, false, '2026-04-06Z', 4)) AS s (otid, will, product, changes, until, number);
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           ownership, price_milliunits, price_currency, sale, path, recorded_at)
SELECT subscription_id, 'yearly', 1, expires_at - interval '1 month', expires_at, false, false, false, 'PURCHASED', 9000,
       'USD', sale || '{"plan": "MONTHLY"}', 'row', expires_at - interval '1 month'
FROM ledger.subscription WHERE sale IS NOT NULL;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(expires_at - interval '1 month', expires_at), tstzrange('2026-03-24Z', NULL), 'active', NULL,
       true, 'yearly', 1
FROM ledger.subscription WHERE sale IS NOT NULL;
