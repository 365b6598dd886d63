-- set from=2023-01-01
-- set until=2023-04-01
-- Who paid, and what came back. A: 100, refunded in full as its kind says. B: 100, half of it. C: 100, a kind that is not
-- known: the refund counts, its amount does not. D: 100, refunded for a reason that is not known: likewise. E: 100, refunded
-- without a kind, as before 2025: in full. F, M, N: a share, a seat and an unknown ownership, each revoked: nothing. G: seven
-- seats for 70, of which two came back on 5 February: 20. H: seats of which all came back on 6 February: 35. K: a term, two
-- payments of 9, of which the first came back: 9. U: 100, replaced on 1 February by another product, a kind that is not known:
-- the amount is unknown.
-- January: charges A B C D E G H K U at 100 * 6 + 70 + 35 + 9; February: K 9, and the product that followed U: 50.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{a,b,c,d,e,f,m,n,g,h,k,u}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, cancellation_reason,
                           is_upgraded, is_trial, is_intro, ownership, price_milliunits, price_currency,
                           revocation_percentage, sale, path, recorded_at, cancellation_recorded_at)
SELECT subscription_id, 'monthly', p.quantity, p.since::timestamptz, p.since::timestamptz + interval '31 days',
       p.cancelled::timestamptz, p.reason, p.upgraded, false, false, p.ownership, p.price, 'USD', p.percentage, p.sale::jsonb,
       'row', p.since::timestamptz, COALESCE(p.cancelled, p.seats_back)::timestamptz
FROM (VALUES
    ('a', 1, '2023-01-10Z', '2023-02-02Z', '0', false, 'PURCHASED', 100000, 100000, '{"revocation_type": "REFUND_FULL"}', NULL),
    ('b', 1, '2023-01-10Z', '2023-02-02Z', '1', false, 'PURCHASED', 100000, 50000, '{"revocation_type": "REFUND_PRORATED"}', NULL),
    ('c', 1, '2023-01-10Z', '2023-02-02Z', '0', false, 'PURCHASED', 100000, NULL, '{"revocation_type": "BUNDLED"}', NULL),
    ('d', 1, '2023-01-10Z', '2023-02-02Z', '7', false, 'PURCHASED', 100000, NULL, NULL, NULL),
    ('e', 1, '2023-01-10Z', '2023-02-02Z', '0', false, NULL, 100000, NULL, NULL, NULL),
    ('f', 1, '2023-01-10Z', '2023-02-02Z', '0', false, 'FAMILY_SHARED', 100000, 100000, '{"revocation_type": "FAMILY_REVOKE"}', NULL),
    ('m', 7, '2023-01-10Z', '2023-02-02Z', '0', false, 'ASSIGNED', 70000, 100000, '{"seats": 7, "revocation_type": "REFUND_FULL"}', NULL),
    ('n', 1, '2023-01-10Z', '2023-02-02Z', '0', false, 'BORROWED', 100000, 100000, '{"revocation_type": "REFUND_FULL"}', NULL),
    ('g', 7, '2023-01-10Z', NULL, NULL, false, 'PURCHASED', 70000, NULL, '{"seats": 7, "revoked_seats": 2}', '2023-02-05Z'),
    ('h', 5, '2023-01-10Z', '2023-02-06Z', '0', false, 'PURCHASED', 35000, 100000,
     '{"seats": 5, "revoked_seats": 5, "revocation_type": "REFUND_FULL"}', NULL),
    ('k', 1, '2023-01-05Z', '2023-02-03Z', '0', false, 'PURCHASED', 9000, 100000,
     '{"plan": "MONTHLY", "payment_number": 1, "payments": 12, "term_ends_at_ms": 1704412800000, "revocation_type": "REFUND_FULL"}', NULL),
    ('k', 1, '2023-02-05Z', NULL, NULL, false, 'PURCHASED', 9000, NULL,
     '{"plan": "MONTHLY", "payment_number": 2, "payments": 12, "term_ends_at_ms": 1704412800000}', NULL),
    ('u', 1, '2023-01-10Z', '2023-02-01Z', '0', true, 'PURCHASED', 100000, NULL, '{"revocation_type": "BUNDLED"}', NULL),
    ('u', 1, '2023-02-01Z', NULL, NULL, false, 'PURCHASED', 50000, NULL, NULL, NULL)
) AS p (otid, quantity, since, cancelled, reason, upgraded, ownership, price, percentage, sale, seats_back)
JOIN ledger.subscription ON original_transaction_id = p.otid;
