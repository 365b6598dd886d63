-- set known_before=2026-01-23Z
-- set known_after=2026-01-25Z
-- On 24 January it became known that J2 had been refunded on the 20th: three days (20th to 22nd) lose a subscription and 10 a
-- month, the 20th loses 10 of revenue.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id) SELECT app_id, 'Production', 'J2' FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           path, recorded_at, cancelled_at, cancellation_recorded_at, facts_recorded_at)
SELECT subscription_id, 'monthly', 1, '2026-01-15Z', '2026-02-15Z', false, false, false, 'row', '2026-01-15Z', '2026-01-20Z',
       '2026-01-24Z', '2026-01-24Z'
FROM ledger.subscription WHERE original_transaction_id = 'J2';
INSERT INTO ledger.period_history (
    period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
    is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency, revocation_percentage,
    recorded_at, cancellation_recorded_at)
SELECT period_id, subscription_id, tstzrange('2026-01-15Z', '2026-01-24Z'), product_id, quantity, purchased_at, expires_at,
       NULL, false, false, false, NULL, NULL, NULL, NULL::bigint, NULL, NULL::int, recorded_at, NULL
FROM ledger.period WHERE facts_recorded_at = '2026-01-24Z';
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(t.since::timestamptz, t.until::timestamptz), tstzrange(t.told::timestamptz, t.corrected::timestamptz),
       t.state::ledger.state, t.reason::ledger.reason, t.state = 'active', 'monthly', 1
FROM (VALUES ('2026-01-15Z', '2026-02-15Z', '2026-01-15Z', '2026-01-24Z', 'active', NULL),
             ('2026-02-15Z', NULL, '2026-01-15Z', '2026-01-24Z', 'expired', 'unknown'),
             ('2026-01-15Z', '2026-01-20Z', '2026-01-24Z', NULL, 'active', NULL),
             ('2026-01-20Z', NULL, '2026-01-24Z', NULL, 'revoked', 'refund')) AS t (since, until, told, corrected, state, reason)
JOIN ledger.subscription ON original_transaction_id = 'J2';
WITH new AS (
    INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                              occurred_at, as_of, recorded_at)
    SELECT gen_random_uuid(), app_id, environment, subscription_id, 2, 0, 'refund.granted', 'monthly', '2026-01-20Z',
           '2026-01-24Z', '2026-01-24Z'
    FROM ledger.subscription WHERE original_transaction_id = 'J2' RETURNING event_id)
INSERT INTO ledger.event_feed (position, event_id) SELECT 1000, event_id FROM new;
