-- set as_known_at=2026-03-25Z
-- set from=2026-03-09
-- set until=2026-03-13
-- On 11 March Apple shows B's period of the 10th under X, which another customer owns. X pays 12 since the 10th; B does not
-- pay, although its owner keeps access to the end, and although B paid in January. C and G are yearly, 8 each; E and J pay 10,
-- H pays 12.
WITH x AS (
    INSERT INTO ledger.subscription
        (app_id, environment, original_transaction_id, group_id, version, as_of, checked_at, recorded_at, expires_at)
    SELECT app_id, 'Production', 'X', 'g', 1, '2026-03-24Z', '2026-03-24Z', '2026-03-24Z', '2026-04-10Z' FROM ledger.app
    RETURNING subscription_id
), moved AS (
    INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                               is_upgraded, is_trial, is_intro, ownership, path, recorded_at)
    SELECT x.subscription_id, 'B2', 'monthly', 1, '2026-03-10Z', '2026-04-10Z', false, false, false, 'PURCHASED', 'row',
           '2026-03-11 12:00Z'
    FROM x)
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange('2026-03-10Z', '2026-04-10Z'), tstzrange('2026-03-11 12:00Z', NULL), 'active', NULL::ledger.reason,
       true, 'monthly', 1 FROM x;
INSERT INTO ledger.period_history (
    period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
    is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency, revocation_percentage,
    recorded_at, cancellation_recorded_at)
SELECT period_id, subscription_id, tstzrange(recorded_at, '2026-03-11 12:00Z'), product_id, quantity, purchased_at, expires_at,
       cancelled_at, is_upgraded, is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, NULL::bigint, NULL,
       NULL::int, recorded_at, NULL
FROM ledger.period WHERE web_order_line_item_id = 'B2' AND subscription_id = (
    SELECT subscription_id FROM ledger.subscription WHERE original_transaction_id = 'B');
UPDATE ledger.period SET is_upgraded = true, cancelled_at = purchased_at, cancellation_reason = 'moved to X',
    facts_recorded_at = '2026-03-11 12:00Z', cancellation_recorded_at = '2026-03-11 12:00Z'
WHERE web_order_line_item_id = 'B2' AND subscription_id = (
    SELECT subscription_id FROM ledger.subscription WHERE original_transaction_id = 'B');
UPDATE ledger.subscription_span SET known = tstzrange(lower(known), '2026-03-11 12:00Z')
WHERE upper_inf(known)
  AND subscription_id = (SELECT subscription_id FROM ledger.subscription WHERE original_transaction_id = 'B');
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(f.since::timestamptz, f.until::timestamptz), tstzrange('2026-03-11 12:00Z', NULL),
       f.state::ledger.state, f.reason::ledger.reason, f.entitled, 'monthly', 2
FROM ledger.subscription CROSS JOIN (VALUES
    ('2026-01-05Z', '2026-01-20Z', 'active', NULL, true), ('2026-01-20Z', '2026-03-10Z', 'revoked', 'refund', false),
    ('2026-03-10Z', '2026-04-10Z', 'awaiting_renewal', 'replacement', true),
    ('2026-04-10Z', NULL, 'expired', 'other', false)) AS f (since, until, state, reason, entitled)
WHERE original_transaction_id = 'B';
