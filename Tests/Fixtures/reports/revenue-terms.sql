-- set from=2023-05-01
-- set until=2023-06-01
-- Payments of terms in May. K states no price: the catalog's 96 is that of a year, so it is unknown; so is that of W, whose plan
-- is not known. L paid 10.99 on 1 May, and another product replaced it on the 16th for 100: whether Apple gave some of the
-- payment back is not stated, so the proration is not known. M paid the same, and Apple states half: 5.495. U is a year that is
-- paid at once, of which the catalog knows the price: 96.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L,M,U,W}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
                           is_intro, ownership, price_milliunits, price_currency, revocation_percentage, sale, path, recorded_at)
SELECT public.id(p.otid), p.product, 1, p.since::timestamptz, p.since::timestamptz + p.lasts::interval, p.replaced::timestamptz,
       p.replaced IS NOT NULL, false, false, 'PURCHASED', p.price, CASE WHEN p.price IS NOT NULL THEN 'USD' END, p.share,
       p.sale::jsonb, 'row', p.since::timestamptz
FROM (VALUES
    ('K', 'yearly', '2023-05-01Z', '1 month', NULL, NULL, NULL, '{"plan": "MONTHLY", "payment_number": 3, "payments": 12}'),
    ('L', 'yearly', '2023-05-01Z', '1 month', '2023-05-16Z', 10990, NULL, '{"plan": "MONTHLY", "payment_number": 3, "payments": 12}'),
    ('L', 'lifetime', '2023-05-16Z', '1 year', NULL, 100000, NULL, '{"plan": "BILLED_UPFRONT"}'),
    ('M', 'yearly', '2023-05-01Z', '1 month', '2023-05-16Z', 10990, 50000,
     '{"plan": "MONTHLY", "payment_number": 3, "payments": 12, "revocation_type": "REFUND_PRORATED"}'),
    ('M', 'lifetime', '2023-05-16Z', '1 year', NULL, 100000, NULL, '{"plan": "BILLED_UPFRONT"}'),
    ('U', 'yearly', '2023-05-01Z', '1 year', NULL, NULL, NULL, '{"plan": "BILLED_UPFRONT"}'),
    ('W', 'yearly', '2023-05-01Z', '1 month', NULL, NULL, NULL, '{"plan": "WEEKLY"}')
) AS p (otid, product, since, lasts, replaced, price, share, sale);
