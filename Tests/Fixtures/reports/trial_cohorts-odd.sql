-- set as_known_at=2026-03-25Z
-- T: a trial, billing retry, and the first paid period 62 days after its end: Apple charged after all; converted.
-- U: a trial and a paid period 100 days later: lost, whatever came then. V: a trial that Apple tries to charge for since 1
-- March: undecided. W: two trial periods in a row (a product changed within the trial), then paid: one trial, converted.
-- K: renewal was off, and the customer came back nine days after the end: lost, for the feed says reactivated. N: a paid
-- product replaced the trial at once: converted, though the feed says product.changed alone. O: first seen on 10 December, when
-- its trial was over and paid for: converted by its periods. R: first seen while the trial ran, with the next period charged
-- ahead: converted. First seen on 20 February: X, whose trial was over since 8 October, lost; Y, who came back nine days after
-- the end, lost; Z, charged twelve days after an end at which Apple tried to charge, converted. First seen on 10 March: Q, over
-- since 5 March while Apple tries to charge, undecided.
-- With A and D of the history that is, by when they began: 2025-09 U lost; 2025-10 X and Y lost, Z converted; 2025-12 T, W, N,
-- O and R converted, K lost; 2026-01 as ever; 2026-02 V and Q undecided.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{T,U,V,W,K,N,O,R,X,Y,Z,Q}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           cancelled_at, is_upgraded, is_trial, is_intro, path, recorded_at)
SELECT subscription_id, p.line, p.product_id, 1, p.since::timestamptz, p.until::timestamptz, p.replaced::timestamptz,
       p.replaced IS NOT NULL, p.is_trial, false, 'row', p.known::timestamptz
FROM (VALUES
    ('T', 'T0', 'monthly', '2025-12-01Z', '2025-12-08Z', NULL, true, '2025-12-01Z'),
    ('T', 'T1', 'monthly', '2026-02-08Z', '2026-03-08Z', NULL, false, '2026-02-08Z'),
    ('U', 'U0', 'monthly', '2025-09-01Z', '2025-09-08Z', NULL, true, '2025-09-01Z'),
    ('U', 'U1', 'monthly', '2025-12-17Z', '2026-01-17Z', NULL, false, '2025-12-17Z'),
    ('V', 'V0', 'monthly', '2026-02-22Z', '2026-03-01Z', NULL, true, '2026-02-22Z'),
    ('W', 'W0', 'monthly', '2025-12-10Z', '2025-12-24Z', '2025-12-12Z', true, '2025-12-10Z'),
    ('W', 'W1', 'monthly', '2025-12-12Z', '2025-12-26Z', NULL, true, '2025-12-12Z'),
    ('W', 'W2', 'monthly', '2025-12-26Z', '2026-01-26Z', NULL, false, '2025-12-26Z'),
    ('K', 'K0', 'monthly', '2025-12-01Z', '2025-12-08Z', NULL, true, '2025-12-01Z'),
    ('K', 'K1', 'monthly', '2025-12-17Z', '2026-01-17Z', NULL, false, '2025-12-17Z'),
    ('N', 'N0', 'monthly', '2025-12-01Z', '2025-12-08Z', '2025-12-04Z', true, '2025-12-01Z'),
    ('N', 'N1', 'yearly', '2025-12-04Z', '2026-12-04Z', NULL, false, '2025-12-04Z'),
    ('O', 'O0', 'monthly', '2025-12-01Z', '2025-12-08Z', NULL, true, '2025-12-10Z'),
    ('O', 'O1', 'monthly', '2025-12-08Z', '2026-01-08Z', NULL, false, '2025-12-10Z'),
    ('R', 'R0', 'monthly', '2025-12-04Z', '2025-12-11Z', NULL, true, '2025-12-10Z'),
    ('R', 'R1', 'monthly', '2025-12-11Z', '2026-01-11Z', NULL, false, '2025-12-10Z'),
    ('X', 'X0', 'monthly', '2025-10-01Z', '2025-10-08Z', NULL, true, '2026-02-20Z'),
    ('Y', 'Y0', 'monthly', '2025-10-01Z', '2025-10-08Z', NULL, true, '2026-02-20Z'),
    ('Y', 'Y1', 'monthly', '2025-10-17Z', '2025-11-17Z', NULL, false, '2026-02-20Z'),
    ('Z', 'Z0', 'monthly', '2025-10-01Z', '2025-10-08Z', NULL, true, '2026-02-20Z'),
    ('Z', 'Z1', 'monthly', '2025-10-20Z', '2025-11-20Z', NULL, false, '2026-02-20Z'),
    ('Q', 'Q0', 'monthly', '2026-02-26Z', '2026-03-05Z', NULL, true, '2026-03-10Z')
) AS p (otid, line, product_id, since, until, replaced, is_trial, known)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.transaction_alias (period_id, transaction_id)
SELECT period_id, web_order_line_item_id FROM ledger.period
WHERE web_order_line_item_id ~ '^[TUVWKNORXYZQ]';
INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id, occurred_at,
                          as_of, recorded_at, detail)
SELECT gen_random_uuid(), app_id, environment, subscription_id, e.of_version, 0, e.kind::ledger.event_kind, 'monthly',
       e.at::timestamptz, e.recorded::timestamptz, e.recorded::timestamptz,
       jsonb_strip_nulls(jsonb_build_object('transaction_id', e.line))
FROM (VALUES
    ('T', 1, 'trial.started', '2025-12-01Z', '2025-12-01Z', 'T0'),
    ('T', 2, 'billing.retry_entered', '2025-12-08Z', '2025-12-08Z', NULL),
    ('T', 3, 'trial.converted', '2026-02-08Z', '2026-02-08Z', 'T1'),
    ('U', 1, 'trial.started', '2025-09-01Z', '2025-09-01Z', 'U0'),
    ('U', 2, 'trial.expired', '2025-09-08Z', '2025-09-08Z', NULL),
    ('U', 3, 'subscription.reactivated', '2025-12-17Z', '2025-12-17Z', 'U1'),
    ('V', 1, 'trial.started', '2026-02-22Z', '2026-02-22Z', 'V0'),
    ('V', 2, 'billing.retry_entered', '2026-03-01Z', '2026-03-01Z', NULL),
    ('W', 1, 'trial.started', '2025-12-10Z', '2025-12-10Z', 'W0'),
    ('W', 2, 'product.changed', '2025-12-12Z', '2025-12-12Z', 'W1'),
    ('W', 3, 'trial.converted', '2025-12-26Z', '2025-12-26Z', 'W2'),
    ('K', 1, 'trial.started', '2025-12-01Z', '2025-12-01Z', 'K0'),
    ('K', 2, 'trial.expired', '2025-12-08Z', '2025-12-08Z', NULL),
    ('K', 3, 'subscription.reactivated', '2025-12-17Z', '2025-12-17Z', 'K1'),
    ('N', 1, 'trial.started', '2025-12-01Z', '2025-12-01Z', 'N0'),
    ('N', 2, 'product.changed', '2025-12-04Z', '2025-12-04Z', 'N1'),
    ('O', 1, 'trial.started', '2025-12-01Z', '2025-12-10Z', 'O0'),
    ('R', 1, 'trial.started', '2025-12-04Z', '2025-12-10Z', 'R0'),
    ('X', 1, 'trial.started', '2025-10-01Z', '2026-02-20Z', 'X0'),
    ('Y', 1, 'trial.started', '2025-10-01Z', '2026-02-20Z', 'Y0'),
    ('Z', 1, 'trial.started', '2025-10-01Z', '2026-02-20Z', 'Z0'),
    ('Q', 1, 'trial.started', '2026-02-26Z', '2026-03-10Z', 'Q0')
) AS e (otid, of_version, kind, at, recorded, line)
JOIN ledger.subscription ON original_transaction_id = e.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(s.since::timestamptz, s.until::timestamptz), tstzrange(s.known::timestamptz, NULL),
       s.state::ledger.state, s.reason::ledger.reason, false, 'monthly', 1
FROM (VALUES
    ('X', '2025-10-08Z', NULL, '2026-02-20Z', 'expired', 'voluntary'),
    ('Y', '2025-10-08Z', '2025-10-17Z', '2026-02-20Z', 'expired', 'unknown'),
    ('Z', '2025-10-08Z', '2025-10-20Z', '2026-02-20Z', 'billing_retry', NULL),
    ('Q', '2026-03-05Z', NULL, '2026-03-10Z', 'billing_retry', NULL)
) AS s (otid, since, until, known, state, reason)
JOIN ledger.subscription ON original_transaction_id = s.otid;
