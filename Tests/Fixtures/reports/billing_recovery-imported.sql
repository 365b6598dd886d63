-- set as_known_at=2026-03-25Z
-- Imported on 5 March. X was in billing retry since 20 February and paid on 12 March, 20 days after. Y was in grace since 1 March
-- and had paid on the 8th, 7 days after, within grace. Z had failed on 10 February and its grace was over on the 26th; Apple gave
-- up on 20 March. W is tried since 25 February; another payment of its term had failed on 20 December, and was made before
-- the import: not among them. V had been given up before the import: not among them.
-- With E of the history: February E, X, Z, W; two had grace; E recovered in it and X after (5 and 20 days: 12.5), Z is lost,
-- W undecided: 2 of 3. March: E undecided, Y recovered in grace after 7 days.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{X,Y,Z,W,V}'::text[]) FROM ledger.app;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(t.since::timestamptz, t.until::timestamptz), tstzrange(t.told::timestamptz, t.corrected::timestamptz),
       t.state::ledger.state, t.reason::ledger.reason, t.state IN ('active', 'grace_period'), 'monthly', 1
FROM (VALUES
    ('X', '2026-01-20Z', '2026-02-20Z', 'active', NULL, '2026-03-05Z', NULL),
    ('X', '2026-02-20Z', NULL, 'billing_retry', NULL, '2026-03-05Z', '2026-03-12Z'),
    ('X', '2026-02-20Z', '2026-03-12Z', 'billing_retry', NULL, '2026-03-12Z', NULL),
    ('X', '2026-03-12Z', NULL, 'active', NULL, '2026-03-12Z', NULL),
    ('Y', '2026-02-01Z', '2026-03-01Z', 'active', NULL, '2026-03-05Z', '2026-03-08Z'),
    ('Y', '2026-03-01Z', '2026-03-17Z', 'grace_period', NULL, '2026-03-05Z', '2026-03-08Z'),
    ('Y', '2026-03-17Z', NULL, 'billing_retry', NULL, '2026-03-05Z', '2026-03-08Z'),
    ('Y', '2026-02-01Z', NULL, 'active', NULL, '2026-03-08Z', NULL),
    ('Z', '2026-01-10Z', '2026-02-10Z', 'active', NULL, '2026-03-05Z', NULL),
    ('Z', '2026-02-10Z', '2026-02-26Z', 'grace_period', NULL, '2026-03-05Z', NULL),
    ('Z', '2026-02-26Z', NULL, 'billing_retry', NULL, '2026-03-05Z', '2026-03-20Z'),
    ('Z', '2026-02-26Z', '2026-03-20Z', 'billing_retry', NULL, '2026-03-20Z', NULL),
    ('Z', '2026-03-20Z', NULL, 'expired', 'billing_error', '2026-03-20Z', NULL),
    ('W', '2025-11-20Z', '2025-12-20Z', 'active', NULL, '2026-03-05Z', NULL),
    ('W', '2025-12-20Z', '2026-01-25Z', 'billing_retry', NULL, '2026-03-05Z', NULL),
    ('W', '2026-01-25Z', '2026-02-25Z', 'active', NULL, '2026-03-05Z', NULL),
    ('W', '2026-02-25Z', NULL, 'billing_retry', NULL, '2026-03-05Z', NULL),
    ('V', '2025-12-01Z', '2026-01-01Z', 'active', NULL, '2026-03-05Z', NULL),
    ('V', '2026-01-01Z', '2026-03-02Z', 'billing_retry', NULL, '2026-03-05Z', NULL),
    ('V', '2026-03-02Z', NULL, 'expired', 'billing_error', '2026-03-05Z', NULL)
) AS t (otid, since, until, state, reason, told, corrected)
JOIN ledger.subscription ON original_transaction_id = t.otid;
WITH new AS (
    INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id, occurred_at,
                              as_of, recorded_at, detail)
    SELECT gen_random_uuid(), app_id, environment, subscription_id, e.of_version, 0, e.kind::ledger.event_kind, 'monthly',
           e.at::timestamptz, e.recorded::timestamptz, e.recorded::timestamptz, e.detail::jsonb
    FROM (VALUES
        ('X', 1, 'subscription.started', '2026-01-20Z', '2026-03-05Z', '{}'),
        ('X', 2, 'subscription.recovered', '2026-03-12Z', '2026-03-12Z', '{}'),
        ('Y', 1, 'subscription.started', '2026-02-01Z', '2026-03-05Z', '{}'),
        ('Y', 2, 'subscription.recovered', '2026-03-01Z', '2026-03-08Z', '{}'),
        ('Z', 1, 'subscription.started', '2026-01-10Z', '2026-03-05Z', '{}'),
        ('Z', 2, 'subscription.expired', '2026-03-20Z', '2026-03-20Z', '{"reason": "billing_error"}'),
        ('W', 1, 'subscription.started', '2026-01-25Z', '2026-03-05Z', '{}'),
        ('V', 1, 'subscription.started', '2025-12-01Z', '2026-03-05Z', '{}')
    ) AS e (otid, of_version, kind, at, recorded, detail)
    JOIN ledger.subscription ON original_transaction_id = e.otid RETURNING event_id)
INSERT INTO ledger.event_feed (position, event_id) SELECT 1000 + row_number() OVER (ORDER BY event_id), event_id FROM new;
