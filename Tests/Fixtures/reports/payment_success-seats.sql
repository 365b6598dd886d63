-- set as_known_at=2026-03-25Z
-- set from=2025-10-01
-- set until=2025-12-01
-- Groups that pay a term, and have two transactions of a month. K added seats on 10 October, and both renewed together on
-- 1 November, and on 1 December: two payments due, both on time. L added seats, and the next payment was made twelve days late.
-- M did too; Apple still tries. N added seats, and its term ended. Of O the first seats were refunded as a whole, so the month ran
-- to its end with the added ones, and was followed on time. Of P the added ones were refunded, likewise. Q was refunded as
-- a whole: nothing was due. R's added seats have a number that cannot be read, and its next payment was made on time.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K1,L1,M1,N1,O1,P1,Q1,R1}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
                           is_intro, sale, path, recorded_at, cancellation_recorded_at)
SELECT public.id(p.otid), 'yearly', 6, p.since::timestamptz, p.until::timestamptz, p.refunded::timestamptz, false, false, false,
       jsonb_strip_nulls(jsonb_build_object(
           'plan', 'MONTHLY', 'payment_number', NULLIF(p.number, 0), 'payments', CASE WHEN p.number > 0 THEN 12 END, 'seats', 6,
           'one_of_several', true)), 'row', p.since::timestamptz, p.refunded::timestamptz
FROM (VALUES
    ('K1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('K1', '2025-10-10Z', '2025-11-01Z', 1, NULL),
    ('K1', '2025-11-01Z', '2025-12-01Z', 2, NULL), ('K1', '2025-11-01Z', '2025-12-01Z', 2, NULL),
    ('K1', '2025-12-01Z', '2026-01-01Z', 3, NULL), ('K1', '2025-12-01Z', '2026-01-01Z', 3, NULL),
    ('L1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('L1', '2025-10-10Z', '2025-11-01Z', 1, NULL),
    ('L1', '2025-11-13Z', '2025-12-13Z', 2, NULL), ('L1', '2025-11-13Z', '2025-12-13Z', 2, NULL),
    ('M1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('M1', '2025-10-10Z', '2025-11-01Z', 1, NULL),
    ('N1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('N1', '2025-10-10Z', '2025-11-01Z', 1, NULL),
    ('O1', '2025-10-01Z', '2025-11-01Z', 1, '2025-10-20Z'), ('O1', '2025-10-10Z', '2025-11-01Z', 1, NULL),
    ('O1', '2025-11-01Z', '2025-12-01Z', 2, '2025-11-20Z'),
    ('P1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('P1', '2025-10-10Z', '2025-11-01Z', 1, '2025-10-20Z'),
    ('P1', '2025-11-01Z', '2025-12-01Z', 2, '2025-11-20Z'),
    ('Q1', '2025-10-01Z', '2025-11-01Z', 1, '2025-10-20Z'), ('Q1', '2025-10-10Z', '2025-11-01Z', 1, '2025-10-20Z'),
    ('R1', '2025-10-01Z', '2025-11-01Z', 1, NULL), ('R1', '2025-10-10Z', '2025-11-01Z', 0, NULL),
    ('R1', '2025-11-01Z', '2025-12-01Z', 2, '2025-11-20Z')
) AS p (otid, since, until, number, refunded);
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT public.id(t.otid), tstzrange('2025-11-01Z', NULL), tstzrange('2025-11-20Z', NULL), t.state::ledger.state,
       t.reason::ledger.reason, t.state = 'active', 'yearly', 1
FROM (VALUES ('K1', 'active', NULL), ('L1', 'active', NULL), ('M1', 'billing_retry', NULL), ('N1', 'expired', 'billing_error'),
             ('O1', 'revoked', 'refund'), ('P1', 'revoked', 'refund'), ('Q1', 'revoked', 'refund'),
             ('R1', 'revoked', 'refund')) AS t (otid, state, reason);
