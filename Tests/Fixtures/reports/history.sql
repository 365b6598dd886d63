-- A small history, written as settlements write it: who bought what, and when that was learnt. All instants are UTC.
--
-- Prices: monthly 10 USD, from 1 March 2026 on 12 (said on 15 February); in DEU 9 EUR; yearly 96 USD; lifetime has none.
--
--  A  trial 1-8 January, paid 8 January-8 February-8 March, renewal turned off: over on 8 March
--  B  (DEU) paid from 5 January, refunded on 20 January (learnt on the 21st); came back on 10 March, renews
--  C  monthly from 10 January, upgraded to yearly on 25 January; the yearly one runs for a year
--  D  trial 15-22 January, renewal turned off: lost
--  E  paid 20 January-20 February at 7.50 USD as its upload said; grace on 20 February, paid on the 25th (the period
--     begins on the 20th); on 20 March Apple could not charge again: billing retry
--  F  shared by the family, all year
--  G  yearly since 10 January 2025: its second charge follows a year of paid service
--  H  February at an unknown introductory price, March at 12, renews on 1 April
--  J  10 February-10 March, on 5 March extended to 20 March, then over; renewal was off from the start
--  S  in the sandbox: never among the others
--  P  lifetime, bought on 3 February at 25 GBP as its upload said, refunded on 3 March
--  Q  lifetime, bought on 10 February at an unknown price
INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.app', 'Example');
INSERT INTO ledger.app_budget (app_id) SELECT app_id FROM ledger.app;
INSERT INTO ledger.product (app_id, product_id, group_id, level, period, price_milliunits, currency)
SELECT app_id, p.* FROM ledger.app CROSS JOIN (VALUES
    ('monthly', 'g', 2, 'P1M', 12000, 'USD'), ('yearly', 'g', 1, 'P1Y', 96000, 'USD'),
    ('lifetime', NULL, NULL, NULL, NULL, NULL)) p;
SELECT ledger.record_price(app_id, 'monthly', '', tstzrange(NULL, NULL), 10000, 'USD', '2025-01-01Z') FROM ledger.app;
SELECT ledger.record_price(app_id, 'yearly', '', tstzrange(NULL, NULL), 96000, 'USD', '2025-01-01Z') FROM ledger.app;
SELECT ledger.record_price(app_id, 'monthly', 'DEU', tstzrange(NULL, NULL), 9000, 'EUR', '2025-01-01Z') FROM ledger.app;
SELECT ledger.record_price(app_id, 'monthly', '', tstzrange('2026-03-01Z', NULL), 12000, 'USD', '2026-02-15Z') FROM ledger.app;

CREATE FUNCTION public.id(otid text) RETURNS bigint LANGUAGE sql AS
    'SELECT subscription_id FROM ledger.subscription WHERE original_transaction_id = otid';

-- Puts a timeline in the place of what was said before: rows of from, to, state, reason, product, flags, allowed_until.
CREATE FUNCTION public.tell(otid text, at timestamptz, VARIADIC spans text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE ledger.subscription_span SET known = tstzrange(lower(known), at)
    WHERE subscription_id = public.id(otid) AND upper_inf(known);
    INSERT INTO ledger.subscription_span
        (subscription_id, valid, known, state, reason, entitled, product_id, flags, allowed_until, version)
    SELECT public.id(otid), tstzrange((f[1] || 'Z')::timestamptz, (NULLIF(f[2], '') || 'Z')::timestamptz),
           tstzrange(at, NULL), f[3]::ledger.state, NULLIF(f[4], '')::ledger.reason,
           f[3] IN ('active', 'grace_period', 'awaiting_renewal'), f[5],
           string_to_array(COALESCE(f[6], ''), ','), (NULLIF(f[7], '') || 'Z')::timestamptz, 1
    FROM unnest(spans) line CROSS JOIN LATERAL string_to_array(line, '|') f;
$$;

-- Tells an event and puts it into the feed.
CREATE FUNCTION public.report(
    otid text, of_version bigint, of_kind text, product text, occurred timestamptz, recorded timestamptz, more jsonb)
RETURNS void LANGUAGE sql AS $$
    WITH new AS (
        INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                                  occurred_at, as_of, recorded_at, detail)
        SELECT gen_random_uuid(), app_id, environment, subscription_id, of_version, 0, of_kind::ledger.event_kind, product,
               occurred, recorded, recorded, more
        FROM ledger.subscription WHERE original_transaction_id = otid RETURNING event_id)
    INSERT INTO ledger.event_feed (position, event_id)
    SELECT (SELECT count(*) + 1 FROM ledger.event_feed), event_id FROM new;
$$;

-- Apple shows all periods of a subscription under another id from an instant on: the new one has no events of its own.
CREATE FUNCTION public.move(otid text, destination text, at timestamptz) RETURNS void LANGUAGE sql AS $$
    INSERT INTO ledger.subscription
        (app_id, environment, original_transaction_id, group_id, version, as_of, checked_at, recorded_at, will_renew, expires_at)
    SELECT app_id, environment, destination, group_id, 1, as_of, checked_at, recorded_at, will_renew, expires_at
    FROM ledger.subscription WHERE original_transaction_id = otid;
    INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                               is_upgraded, is_trial, is_intro, ownership, path, recorded_at)
    SELECT public.id(destination), web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial,
           is_intro, ownership, path, at
    FROM ledger.period WHERE subscription_id = public.id(otid);
    INSERT INTO ledger.transaction_alias (period_id, transaction_id)
    SELECT period_id, destination || web_order_line_item_id FROM ledger.period WHERE subscription_id = public.id(destination);
    INSERT INTO ledger.period_history (
        period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
        is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency, revocation_percentage,
        recorded_at, cancellation_recorded_at)
    SELECT period_id, subscription_id, tstzrange(recorded_at, at), product_id, quantity, purchased_at, expires_at, cancelled_at,
           is_upgraded, is_trial, is_intro, NULL, NULL, ownership, NULL, NULL, NULL, recorded_at, NULL
    FROM ledger.period WHERE subscription_id = public.id(otid);
    UPDATE ledger.period SET is_upgraded = true, cancelled_at = purchased_at, cancellation_reason = 'moved to ' || destination,
        facts_recorded_at = at, cancellation_recorded_at = at
    WHERE subscription_id = public.id(otid);
    INSERT INTO ledger.subscription_span
        (subscription_id, valid, known, state, reason, entitled, product_id, flags, allowed_until, version)
    SELECT public.id(destination), valid, CASE WHEN upper_inf(known) AND lower(known) > at THEN known ELSE tstzrange(at, upper(known)) END,
           state, reason, entitled, product_id, flags, allowed_until, 1
    FROM ledger.subscription_span WHERE subscription_id = public.id(otid) AND COALESCE(upper(known) > at, true);
    UPDATE ledger.subscription_span SET known = tstzrange(lower(known), at)
    WHERE subscription_id = public.id(otid) AND COALESCE(upper(known) > at, true) AND lower(known) < at;
    DELETE FROM ledger.subscription_span WHERE subscription_id = public.id(otid) AND lower(known) >= at;
    INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
    SELECT subscription_id, tstzrange(min(purchased_at), NULL), tstzrange(at, NULL), 'expired', 'other', false, 'monthly', 2
    FROM ledger.period WHERE subscription_id = public.id(otid) GROUP BY subscription_id;
$$;

INSERT INTO ledger.subscription
    (app_id, environment, original_transaction_id, group_id, version, as_of, checked_at, recorded_at, will_renew, expires_at)
SELECT app_id, s.environment::ledger.environment, s.otid, 'g', 1, '2026-03-24Z', '2026-03-24Z', '2026-03-24Z', s.will_renew,
       s.expires_at::timestamptz
FROM ledger.app CROSS JOIN (VALUES
    ('Production', 'A', false, '2026-03-08Z'), ('Production', 'B', true, '2026-04-10Z'),
    ('Production', 'C', true, '2027-01-25Z'), ('Production', 'D', false, '2026-01-22Z'),
    ('Production', 'E', true, '2026-03-20Z'), ('Production', 'F', true, '2027-01-01Z'),
    ('Production', 'G', true, '2027-01-10Z'), ('Production', 'H', true, '2026-04-01Z'),
    ('Production', 'J', false, '2026-03-20Z'), ('Sandbox', 'S', true, '2026-02-01Z')
) AS s (environment, otid, will_renew, expires_at);

-- Learnt a minute after it was bought, unless said otherwise.
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           is_upgraded, is_trial, is_intro, ownership, path, recorded_at)
SELECT public.id(p.otid), p.line, p.product_id, 1, (p.since || 'Z')::timestamptz, (p.until || 'Z')::timestamptz, false,
       p.offer = 'trial', p.offer = 'intro', CASE p.offer WHEN 'family' THEN 'FAMILY_SHARED' ELSE 'PURCHASED' END, 'row',
       COALESCE((p.learnt || 'Z')::timestamptz, (p.since || 'Z')::timestamptz + interval '1 minute')
FROM (VALUES
    ('A', 'A0', 'monthly', '2026-01-01', '2026-01-08', 'trial', NULL),
    ('A', 'A1', 'monthly', '2026-01-08', '2026-02-08', '', NULL),
    ('A', 'A2', 'monthly', '2026-02-08', '2026-03-08', '', NULL),
    ('B', 'B1', 'monthly', '2026-01-05', '2026-02-05', '', NULL),
    ('B', 'B2', 'monthly', '2026-03-10', '2026-04-10', '', NULL),
    ('C', 'C1', 'monthly', '2026-01-10', '2026-02-10', '', NULL),
    ('C', 'C2', 'yearly', '2026-01-25', '2027-01-25', '', NULL),
    ('D', 'D0', 'monthly', '2026-01-15', '2026-01-22', 'trial', NULL),
    ('E', 'E1', 'monthly', '2026-01-20', '2026-02-20', '', NULL),
    ('E', 'E2', 'monthly', '2026-02-20', '2026-03-20', '', '2026-02-25'),
    ('F', NULL, 'monthly', '2026-01-01', '2027-01-01', 'family', NULL),
    ('G', 'G1', 'yearly', '2025-01-10', '2026-01-10', '', NULL),
    ('G', 'G2', 'yearly', '2026-01-10', '2027-01-10', '', NULL),
    ('H', 'H1', 'monthly', '2026-02-01', '2026-03-01', 'intro', NULL),
    ('H', 'H2', 'monthly', '2026-03-01', '2026-04-01', '', NULL),
    ('J', 'J1', 'monthly', '2026-02-10', '2026-03-10', '', NULL),
    ('S', 'S1', 'monthly', '2026-01-01', '2026-02-01', '', NULL)
) AS p (otid, line, product_id, since, until, offer, learnt);

-- What was learnt later of a period, with what was known before.
INSERT INTO ledger.period_history (
    period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
    is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency, revocation_percentage,
    recorded_at, cancellation_recorded_at)
SELECT period_id, subscription_id, tstzrange(recorded_at, later.at), product_id, quantity, purchased_at, expires_at,
       cancelled_at, is_upgraded, is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, NULL::bigint, NULL, NULL::int, recorded_at, NULL
FROM ledger.period
JOIN (VALUES ('B1', '2026-01-21Z'::timestamptz), ('C1', '2026-01-25 00:01Z'), ('J1', '2026-03-05Z')) AS later (line, at)
    ON web_order_line_item_id = later.line;
UPDATE ledger.period SET cancelled_at = '2026-01-20Z', cancellation_recorded_at = '2026-01-21Z', facts_recorded_at = '2026-01-21Z'
WHERE web_order_line_item_id = 'B1';
UPDATE ledger.period SET cancelled_at = '2026-01-25Z', is_upgraded = true, cancellation_recorded_at = '2026-01-25 00:01Z',
    facts_recorded_at = '2026-01-25 00:01Z'
WHERE web_order_line_item_id = 'C1';
UPDATE ledger.period SET expires_at = '2026-03-20Z', facts_recorded_at = '2026-03-05Z' WHERE web_order_line_item_id = 'J1';

SELECT public.tell('A', '2026-01-01 00:01Z', '2026-01-01|2026-01-08|active||monthly|trial|',
                    '2026-01-08||expired|unknown|monthly||2026-02-07');
SELECT public.tell('A', '2026-01-08 00:01Z', '2026-01-01|2026-01-08|active||monthly|trial|',
                    '2026-01-08|2026-02-08|active||monthly||', '2026-02-08||expired|unknown|monthly||2026-03-10');
SELECT public.tell('A', '2026-02-08 00:01Z', '2026-01-01|2026-01-08|active||monthly|trial|',
                    '2026-01-08|2026-03-08|active||monthly||', '2026-03-08||expired|voluntary|monthly||');
SELECT public.tell('B', '2026-01-05 00:01Z', '2026-01-05|2026-02-05|active||monthly||',
                    '2026-02-05||expired|unknown|monthly||2026-03-07');
SELECT public.tell('B', '2026-01-21Z', '2026-01-05|2026-01-20|active||monthly||', '2026-01-20||revoked|refund|monthly||');
SELECT public.tell('B', '2026-03-10 00:01Z', '2026-01-05|2026-01-20|active||monthly||',
                    '2026-01-20|2026-03-10|revoked|refund|monthly||', '2026-03-10|2026-04-10|active||monthly||',
                    '2026-04-10||expired|unknown|monthly||2026-05-10');
SELECT public.tell('C', '2026-01-10 00:01Z', '2026-01-10|2026-02-10|active||monthly||',
                    '2026-02-10||expired|unknown|monthly||2026-03-12');
SELECT public.tell('C', '2026-01-25 00:01Z', '2026-01-10|2026-01-25|active||monthly||',
                    '2026-01-25|2027-01-25|active||yearly||', '2027-01-25||expired|unknown|yearly||2027-02-24');
SELECT public.tell('D', '2026-01-15 00:01Z', '2026-01-15|2026-01-22|active||monthly|trial|',
                    '2026-01-22||expired|voluntary|monthly|trial|');
SELECT public.tell('E', '2026-01-20 00:01Z', '2026-01-20|2026-02-20|active||monthly||',
                    '2026-02-20||expired|unknown|monthly||2026-03-22');
SELECT public.tell('E', '2026-02-20 00:01Z', '2026-01-20|2026-02-20|active||monthly||',
                    '2026-02-20|2026-03-08|grace_period||monthly||', '2026-03-08||billing_retry||monthly||2026-04-07');
SELECT public.tell('E', '2026-02-25Z', '2026-01-20|2026-03-20|active||monthly||',
                    '2026-03-20||expired|unknown|monthly||2026-04-19');
SELECT public.tell('E', '2026-03-20 00:01Z', '2026-01-20|2026-03-20|active||monthly||',
                    '2026-03-20||billing_retry||monthly||');
SELECT public.tell('F', '2026-01-01 00:01Z', '2026-01-01|2027-01-01|active||monthly|family_shared|',
                    '2027-01-01||expired|unknown|monthly||2027-01-31');
SELECT public.tell('G', '2025-01-10 00:01Z', '2025-01-10|2026-01-10|active||yearly||',
                    '2026-01-10||expired|unknown|yearly||2026-02-09');
SELECT public.tell('G', '2026-01-10 00:01Z', '2025-01-10|2027-01-10|active||yearly||',
                    '2027-01-10||expired|unknown|yearly||2027-02-09');
SELECT public.tell('H', '2026-02-01 00:01Z', '2026-02-01|2026-03-01|active||monthly|intro|',
                    '2026-03-01||expired|unknown|monthly||2026-03-31');
SELECT public.tell('H', '2026-03-01 00:01Z', '2026-02-01|2026-03-01|active||monthly|intro|',
                    '2026-03-01|2026-04-01|active||monthly||', '2026-04-01||expired|unknown|monthly||2026-05-01');
SELECT public.tell('J', '2026-02-10 00:01Z', '2026-02-10|2026-03-10|active||monthly||',
                    '2026-03-10||expired|voluntary|monthly||');
SELECT public.tell('J', '2026-03-05Z', '2026-02-10|2026-03-20|active||monthly||',
                    '2026-03-20||expired|voluntary|monthly||');
SELECT public.tell('S', '2026-01-01 00:01Z', '2026-01-01|2026-02-01|active||monthly||',
                    '2026-02-01||expired|voluntary|monthly||');

-- The names of the periods that events are about.
INSERT INTO ledger.transaction_alias (period_id, transaction_id)
SELECT period_id, web_order_line_item_id FROM ledger.period WHERE web_order_line_item_id IS NOT NULL;
SELECT public.report('A', 1, 'trial.started', 'monthly', '2026-01-01Z', '2026-01-01 00:01Z', '{}');
SELECT public.report('A', 2, 'trial.converted', 'monthly', '2026-01-08Z', '2026-01-08 00:01Z', '{"transaction_id": "A1"}');
SELECT public.report('D', 1, 'trial.started', 'monthly', '2026-01-15Z', '2026-01-15 00:01Z', '{}');
SELECT public.report('D', 2, 'trial.expired', 'monthly', '2026-01-22Z', '2026-01-22 00:01Z', '{"reason": "voluntary"}');
SELECT public.report('B', 2, 'refund.granted', 'monthly', '2026-01-20Z', '2026-01-21Z', '{"reason": "0"}');
SELECT public.report('B', 3, 'subscription.reactivated', 'monthly', '2026-03-10Z', '2026-03-10 00:01Z',
                      '{"transaction_id": "B2"}');
SELECT public.report('E', 2, 'billing.grace_entered', 'monthly', '2026-02-20Z', '2026-02-20 00:01Z', '{}');
SELECT public.report('E', 3, 'subscription.recovered', 'monthly', '2026-02-20Z', '2026-02-25Z', '{"transaction_id": "E2"}');
SELECT public.report('E', 4, 'billing.retry_entered', 'monthly', '2026-03-20Z', '2026-03-20 00:01Z', '{}');
SELECT public.report('J', 2, 'subscription.extended', 'monthly', '2026-03-05Z', '2026-03-05Z', '{}');

INSERT INTO ledger.purchase
    (app_id, environment, original_transaction_id, product_id, transaction_id, facts, quantity, purchased_at, version, as_of,
     checked_at, recorded_at, first_recorded_at, revoked_at, revocation_recorded_at, facts_recorded_at)
SELECT app_id, 'Production', p.*
FROM ledger.app CROSS JOIN (VALUES
    ('P', 'lifetime', 'P', '{}'::jsonb, 1, '2026-02-03Z'::timestamptz, 2, '2026-03-04Z'::timestamptz,
     '2026-03-04Z'::timestamptz, '2026-03-04Z'::timestamptz, '2026-02-03 00:01Z'::timestamptz, '2026-03-03Z'::timestamptz,
     '2026-03-04Z'::timestamptz, '2026-03-04Z'::timestamptz),
    ('Q', 'lifetime', 'Q', '{}', 1, '2026-02-10Z', 1, '2026-02-10Z', '2026-02-10Z', '2026-02-10Z', '2026-02-10 00:01Z', NULL,
     NULL, NULL)) p;
INSERT INTO ledger.purchase_history
SELECT purchase_id, tstzrange(first_recorded_at, revocation_recorded_at), quantity, purchased_at, NULL, NULL::bigint, NULL, NULL::int, NULL
FROM ledger.purchase WHERE revoked_at IS NOT NULL;

-- What uploads said: B's storefront, E's price, P's price.
INSERT INTO ledger.customer (app_id, name) SELECT app_id, n FROM ledger.app CROSS JOIN unnest('{bea,eve,pat}'::text[]) n;
INSERT INTO ledger.receipt (app_id, digest, data, environment, received_at, asked_at, verified_at, outcome)
SELECT app_id, sha256(n::bytea), n::bytea, 'Production', '2026-01-05Z', '2026-03-24Z', '2026-03-24Z', 'verified'
FROM ledger.app CROSS JOIN unnest('{bea,eve,pat}'::text[]) n;
INSERT INTO ledger.upload (receipt_id, customer_id, uploaded_at, imported, storefront, price_milliunits, currency)
SELECT r.receipt_id, c.customer_id, u.at::timestamptz, false, u.storefront, u.price, u.currency
FROM (VALUES ('bea', '2026-01-05 00:00:30Z', 'DEU', NULL, NULL), ('eve', '2026-01-20 00:00:30Z', NULL, 7500, 'USD'),
             ('pat', '2026-02-03 00:00:30Z', NULL, 25000, 'GBP')) AS u (name, at, storefront, price, currency)
JOIN ledger.customer c USING (name) JOIN ledger.receipt r ON r.data = u.name::bytea;
INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
SELECT receipt_id, public.id(l.otid) FROM (VALUES ('bea', 'B'), ('eve', 'E')) AS l (name, otid)
JOIN ledger.receipt r ON r.data = l.name::bytea;
INSERT INTO ledger.receipt_purchase (receipt_id, purchase_id)
SELECT r.receipt_id, p.purchase_id FROM ledger.receipt r, ledger.purchase p
WHERE r.data = 'pat' AND p.original_transaction_id = 'P';
INSERT INTO ledger.ownership (subscription_id, purchase_id, customer_id, valid, known)
SELECT public.id(o.otid), NULL, c.customer_id, tstzrange(NULL, NULL), tstzrange('2026-01-20Z', NULL)
FROM (VALUES ('bea', 'B'), ('eve', 'E')) AS o (name, otid) JOIN ledger.customer c USING (name)
UNION ALL
SELECT NULL, p.purchase_id, c.customer_id, tstzrange(NULL, NULL), tstzrange('2026-02-03Z', NULL)
FROM ledger.purchase p JOIN ledger.customer c ON c.name = 'pat' WHERE p.original_transaction_id = 'P';
