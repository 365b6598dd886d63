-- What signed transactions state of a sale: the plan, which payment of a term it is, the seats of a group, and how it was
-- taken back. Only who bought pays: shares, seats that others gave and unknown ownerships are access without money.

ALTER TABLE ledger.period ADD COLUMN sale jsonb;
ALTER TABLE ledger.period_history ADD COLUMN sale jsonb;
ALTER TABLE ledger.subscription ADD COLUMN next_payment boolean, ADD COLUMN sale jsonb;
UPDATE ledger.subscription SET next_payment = will_renew WHERE will_renew IS NOT NULL;
COMMENT ON COLUMN ledger.period.ownership IS
    'Apple''s in_app_ownership_type: PURCHASED, FAMILY_SHARED or ASSIGNED; what is not PURCHASED cost another customer';
COMMENT ON COLUMN ledger.period.price_milliunits IS
    'Apple''s price of the whole quantity in thousandths of price_currency, of a group''s seats what their tiers add up '
    'to, of a term one payment; null: no signed transaction gave one';
COMMENT ON COLUMN ledger.period.sale IS
    'Apple''s billingPlanType, commitmentInfo, multiSeatInfo, additionalTransactionReason and revocationType: plan, '
    'payment_number, payments, term_ends_at_ms, term_price, seats, revoked_seats, one_of_several, revocation_type; null: '
    'no signed transaction stated any';
COMMENT ON COLUMN ledger.period.cancellation_recorded_at IS
    'When its cancellation was stored, or the number of its refunded seats, by our clock';
COMMENT ON COLUMN ledger.period_history.sale IS 'As in ledger.period';
COMMENT ON COLUMN ledger.subscription.next_payment IS
    'Whether Apple will try the next payment; null: unknown. will_renew is the customer''s will';
COMMENT ON COLUMN ledger.subscription.sale IS
    'How the newest period is paid: plan, payment_number, payments, term_ends_at_ms, seats; null: nothing is known of it';

CREATE FUNCTION ledger.is_shared(ownership text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT COALESCE(ownership, 'PURCHASED') <> 'PURCHASED'
$$;
COMMENT ON FUNCTION ledger.is_shared IS
    'Whether another customer paid: a family share, a seat of a group, or an ownership that is not known. Rows of a time '
    'without ownership were bought';

CREATE FUNCTION ledger.refunded_share(
    percentage int, sale jsonb, reason text, is_upgraded boolean) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN sale ->> 'revocation_type' NOT IN ('REFUND_FULL', 'REFUND_PRORATED')
                  OR NOT is_upgraded AND reason NOT IN ('0', '1') THEN NULL
                WHEN sale ->> 'revocation_type' = 'REFUND_PRORATED' THEN percentage / 100000.0
                ELSE COALESCE(percentage / 100000.0, 1) END
$$;
COMMENT ON FUNCTION ledger.refunded_share IS
    'Which share of the price Apple gave back with a revocation: what it states, everything where it states no kind (as '
    'before 2025: assumed, so that the share is 1 beside a percentage that is null), and null where the kind or the reason '
    'is not known';

CREATE OR REPLACE VIEW perennial.period_version AS
SELECT p.subscription_id AS stream_id, p.period_id AS charge_id, p.product_id, p.quantity, p.purchased_at, p.expires_at,
       p.cancelled_at, p.is_upgraded,
       CASE WHEN p.is_trial THEN 'trial' WHEN p.is_intro THEN 'intro'
            WHEN p.promotional_offer_id IS NOT NULL THEN 'promotional_offer'
            WHEN p.offer_code_ref_name IS NOT NULL THEN 'offer_code' END AS offer,
       ledger.is_shared(p.ownership) AS is_family_shared,
       p.recorded_at AS first_known_at, p.cancellation_recorded_at AS cancellation_known_at, p.known_from, p.known_until,
       p.price_milliunits, p.price_currency AS currency, p.revocation_percentage, p.sale ->> 'plan' AS plan,
       (p.sale ->> 'payment_number')::int AS payment_number, (p.sale ->> 'payments')::int AS payments,
       (p.sale ->> 'seats')::int AS seats, COALESCE((p.sale ->> 'revoked_seats')::int, 0) AS revoked_seats,
       COALESCE((p.sale ->> 'one_of_several')::boolean, false) AS is_one_of_several,
       ledger.refunded_share(p.revocation_percentage, p.sale, p.cancellation_reason, p.is_upgraded) AS refunded_share
FROM (
    SELECT period_id, subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded,
           is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
           revocation_percentage, sale, cancellation_reason, recorded_at, cancellation_recorded_at, COALESCE(facts_recorded_at, recorded_at) AS known_from,
           NULL::timestamptz AS known_until
    FROM ledger.period WHERE NOT is_upgraded OR cancellation_reason LIKE 'moved to %' IS NOT TRUE
    UNION ALL
    SELECT period_id, subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded,
           is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
           revocation_percentage, sale, NULL, recorded_at, cancellation_recorded_at, lower(known), upper(known)
    FROM ledger.period_history WHERE NOT isempty(known)) p;

CREATE OR REPLACE VIEW perennial.period_history AS
SELECT k.bundle_id, k.environment, p.stream_id, p.charge_id, k.original_transaction_id, p.product_id, p.quantity,
       p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.offer, p.is_family_shared,
       p.first_known_at, p.cancellation_known_at, p.known_from, p.known_until, p.price_milliunits, p.currency,
       p.revocation_percentage, p.plan, p.payment_number, p.payments, p.seats, p.revoked_seats, p.is_one_of_several,
       p.refunded_share
FROM perennial.period_version p JOIN perennial.subscription_key k USING (stream_id);

CREATE OR REPLACE VIEW perennial.purchase_history AS
SELECT a.bundle_id, p.environment::text AS environment, p.purchase_id AS stream_id, p.original_transaction_id,
       p.product_id, h.quantity, h.purchased_at, h.revoked_at, p.first_recorded_at AS first_known_at,
       h.revocation_recorded_at AS revocation_known_at, h.known_from, h.known_until, h.price_milliunits,
       h.price_currency AS currency, h.revocation_percentage,
       ledger.is_shared(p.facts #>> '{ownership,word}') AS is_family_shared,
       CASE WHEN p.facts #>> '{revocation,reason}' NOT IN ('0', '1') THEN NULL
            ELSE COALESCE(h.revocation_percentage / 100000.0, 1) END AS refunded_share
FROM (
    SELECT purchase_id, quantity, purchased_at, revoked_at, (facts #>> '{price,milliunits}')::bigint AS price_milliunits,
           facts #>> '{price,currency}' AS price_currency,
           (facts #>> '{refunded,percentage}')::int AS revocation_percentage, revocation_recorded_at,
           COALESCE(facts_recorded_at, first_recorded_at) AS known_from, NULL::timestamptz AS known_until
    FROM ledger.purchase WHERE version > 0
    UNION ALL
    SELECT purchase_id, quantity, purchased_at, revoked_at, price_milliunits, price_currency, revocation_percentage,
           revocation_recorded_at, lower(known), upper(known)
    FROM ledger.purchase_history WHERE NOT isempty(known)) h
JOIN ledger.purchase p USING (purchase_id)
JOIN ledger.app a USING (app_id);

COMMENT ON COLUMN perennial.period_version.is_family_shared IS
    'Whether another customer paid: a family share, a seat of a group, or an ownership that is not known';
COMMENT ON COLUMN perennial.period_history.is_family_shared IS
    'Whether another customer paid: a family share, a seat of a group, or an ownership that is not known';
COMMENT ON COLUMN perennial.purchase_history.is_family_shared IS 'Whether another customer paid';
COMMENT ON COLUMN perennial.purchase_history.refunded_share IS
    'Which share of the price a refund gives back, from 0 to 1; null: not known';
DO $$
DECLARE
    described record;
BEGIN
    FOR described IN
        SELECT v.view, c.name, c.meaning
        FROM (VALUES ('period_version'), ('period_history')) AS v(view)
        CROSS JOIN (VALUES
            ('plan', 'Apple''s billingPlanType: BILLED_UPFRONT or MONTHLY; null: no signed transaction states it'),
            ('payment_number', 'The number of the payment in a term of payments, from 1; null: it is none'),
            ('payments', 'The payments of the term'),
            ('seats', 'The seats of a group''s transaction; null: it is none'),
            ('revoked_seats', 'How many of them Apple refunded'),
            ('is_one_of_several', 'Whether other transactions are of the same period, because seats were added'),
            ('refunded_share', 'Which share of the price a cancellation gives back, from 0 to 1; null: not known'))
            AS c(name, meaning)
    LOOP
        EXECUTE format('COMMENT ON COLUMN perennial.%I.%I IS %L', described.view, described.name, described.meaning);
    END LOOP;
END $$;

-- They get more columns, so they are made anew.
DROP FUNCTION perennial.charges_as_known(timestamptz);
DROP FUNCTION ledger.charges_of(timestamptz, bigint[]);
DROP FUNCTION ledger.period_charges_of(timestamptz, bigint[]);

CREATE FUNCTION ledger.period_charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int, seats int,
    revoked_seats int, is_one_of_several boolean, refunded_share numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.bundle_id, c.environment, c.stream_id, c.charge_id, c.original_transaction_id, c.product_id, c.quantity,
           c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared, place.storefront,
           -- Apple's price is that of the whole quantity.
           CASE basis.word WHEN 'apple' THEN c.price_milliunits
                           WHEN 'stated' THEN c.quantity * stated.price_milliunits
                           WHEN 'storefront' THEN c.quantity * there.price_milliunits
                           WHEN 'default' THEN c.quantity * anywhere.price_milliunits END,
           CASE basis.word WHEN 'apple' THEN c.currency WHEN 'stated' THEN stated.currency
                           WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency END,
           basis.word, c.first_known_at, c.cancellation_known_at, c.revocation_percentage, c.seats,
           c.revoked_seats, c.is_one_of_several, c.refunded_share
    FROM perennial.period_history c
    LEFT JOIN ledger.stated_charge_price(known_at, streams) stated ON NOT stated.is_purchase AND stated.charge_id = c.charge_id
    LEFT JOIN ledger.storefronts_of(known_at, streams) place
        ON place.stream_id = c.stream_id AND place.valid_from <= c.purchased_at AND c.purchased_at < place.valid_until
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = place.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
    CROSS JOIN LATERAL (
        SELECT ledger.price_basis(c.offer, c.is_family_shared, c.price_milliunits, stated.price_milliunits,
                                  there.price_milliunits, anywhere.price_milliunits) AS word) basis
    WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
      AND (streams IS NULL OR c.stream_id = ANY (streams))
$$;
COMMENT ON FUNCTION ledger.period_charges_of IS
    'Every period with its price: the subscriptions'' half of charges_of';

CREATE FUNCTION ledger.charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int, seats int,
    revoked_seats int, is_one_of_several boolean, refunded_share numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.bundle_id, c.environment, 'subscription', c.stream_id, c.charge_id, c.original_transaction_id,
           c.product_id, c.quantity, c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer,
           c.is_family_shared, c.storefront, c.amount_milliunits, c.currency, c.price_basis, c.first_known_at,
           c.cancellation_known_at, c.revocation_percentage, c.seats, c.revoked_seats, c.is_one_of_several,
           c.refunded_share
    FROM ledger.period_charges_of(known_at, streams) c
    UNION ALL
    SELECT c.bundle_id, c.environment, 'purchase', c.stream_id, c.stream_id, c.original_transaction_id, c.product_id,
           c.quantity, c.purchased_at, NULL, c.revoked_at, false, NULL, c.is_family_shared, place.storefront,
           CASE basis.word WHEN 'apple' THEN c.price_milliunits
                           WHEN 'stated' THEN c.quantity * stated.price_milliunits
                           WHEN 'storefront' THEN c.quantity * there.price_milliunits
                           WHEN 'default' THEN c.quantity * anywhere.price_milliunits END,
           CASE basis.word WHEN 'apple' THEN c.currency WHEN 'stated' THEN stated.currency
                           WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency END,
           basis.word, c.first_known_at, c.revocation_known_at, c.revocation_percentage, NULL, 0, false,
           c.refunded_share
    FROM perennial.purchase_history c
    LEFT JOIN ledger.stated_charge_price(known_at, NULL) stated ON stated.is_purchase AND stated.charge_id = c.stream_id
    LEFT JOIN (
        SELECT w.stream_id, w.storefront,
               CASE WHEN row_number() OVER stream = 1 THEN '-infinity'
                    ELSE w.stated_at - interval '1 day' END AS valid_from,
               COALESCE(lead(w.stated_at) OVER stream - interval '1 day', 'infinity') AS valid_until
        FROM perennial.purchase_stated_price w WHERE w.storefront IS NOT NULL AND w.stated_at <= known_at
        WINDOW stream AS (PARTITION BY w.stream_id ORDER BY w.stated_at, w.stated_id)
    ) place
        ON place.stream_id = c.stream_id AND place.valid_from <= c.purchased_at AND c.purchased_at < place.valid_until
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = place.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
    CROSS JOIN LATERAL (
        SELECT ledger.price_basis(NULL, c.is_family_shared, c.price_milliunits, stated.price_milliunits, there.price_milliunits,
                                  anywhere.price_milliunits) AS word) basis
    WHERE streams IS NULL AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
$$;
COMMENT ON FUNCTION ledger.charges_of IS
    'Every period and one-time purchase as known at an instant, with its price in thousandths of currency and where '
    'that comes from (ledger.price_basis)';

CREATE FUNCTION perennial.charges_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int, seats int,
    revoked_seats int, is_one_of_several boolean, refunded_share numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM ledger.charges_of(known_at, NULL)
$$;
COMMENT ON FUNCTION perennial.charges_as_known IS 'ledger.charges_of for every subscription and one-time purchase';

CREATE OR REPLACE FUNCTION ledger.revenue_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moved.occurred_at, c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id,
           moved.kind, c.product_id, c.purchased_at, c.offer, c.storefront, moved.amount, c.currency, c.price_basis,
           cut.percent, cut.reason, round(moved.amount * (100 - cut.percent) / 100.0)::bigint, moved.recorded_at
    FROM (
        SELECT served.*, served.service - COALESCE(max(served.service) FILTER (WHERE served.begins_anew) OVER (
                   PARTITION BY served.stream_id, served.kind
                   ORDER BY served.purchased_at, served.charge_id), '0') AS service_before
        FROM (
            SELECT r.*,
                   sum(CASE WHEN r.is_service THEN GREATEST(r.serves_until - r.purchased_at, interval '0')
                            ELSE interval '0' END) OVER before AS service,
                   r.purchased_at > max(r.serves_until) FILTER (WHERE r.is_service) OVER before + interval '60 days'
                       AS begins_anew
            FROM (
                SELECT k.*, replaced.at AS replaced_at,
                       k.offer IS DISTINCT FROM 'trial' AND NOT k.is_family_shared AND NOT k.is_rest_refunded
                           AND NOT k.is_addition
                           AND (k.cancelled_at IS NULL OR k.is_upgraded) AS is_service,
                       LEAST(k.expires_at, replaced.at) AS serves_until
                FROM (
                    SELECT h.*,
                           -- The replacement brings a repayment, dated as it is. A refund of the whole price with
                           -- another date came beside it (Period.restRefundedAt in Swift).
                           COALESCE(h.is_upgraded AND h.revocation_percentage = 100000 AND h.cancelled_at >= h.purchased_at
                                    AND COALESCE(h.cancelled_at NOT BETWEEN h.followed_at - interval '1 minute'
                                                                        AND h.followed_at + interval '1 minute',
                                                 h.cancelled_at >= h.expires_at), false) AS is_rest_refunded
                    FROM (
                        SELECT g.*, lead(g.first_known_at) OVER stream AS next_known_at,
                               -- Seats that were added to a period serve no further days.
                               COALESCE(g.is_one_of_several AND lag(g.expires_at) OVER stream = g.expires_at, false)
                                   AS is_addition,
                               -- A sandbox row may not say when it was replaced: when the next period began, or at once
                               -- if it was charged ahead of a period that another one had already begun to cover.
                               CASE WHEN g.cancelled_at IS NULL AND lag(g.expires_at) OVER stream > g.purchased_at
                                    THEN g.purchased_at
                                    ELSE lead(g.purchased_at) OVER stream END AS followed_at
                        FROM ledger.charges_of(known_at, streams) g
                        WINDOW stream AS (PARTITION BY g.stream_id, g.kind ORDER BY g.purchased_at, g.charge_id)) h) k
                -- The date may be that of a later refund, so a replacement is no later than the next period.
                CROSS JOIN LATERAL (
                    SELECT CASE WHEN k.is_rest_refunded THEN k.followed_at
                                WHEN k.is_upgraded THEN LEAST(k.cancelled_at, k.followed_at) END AS at) replaced) r
            WINDOW before AS (
                PARTITION BY r.stream_id, r.kind ORDER BY r.purchased_at, r.charge_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) served
    ) c
    LEFT JOIN perennial.small_business_history small
        ON small.bundle_id = c.bundle_id AND small.valid_from <= c.purchased_at AND c.purchased_at < small.valid_until
        AND small.known_from <= known_at AND COALESCE(small.known_until > known_at, true)
    CROSS JOIN LATERAL (
        -- A year of Apple's calendar may be two hours short of 365 days on ours.
        SELECT CASE WHEN small.bundle_id IS NOT NULL OR c.service_before >= interval '364 days 22 hours' THEN 15
                    ELSE 30 END AS percent,
               CASE WHEN small.bundle_id IS NOT NULL THEN 'small_business'
                    WHEN c.service_before >= interval '364 days 22 hours' THEN 'after_one_year'
                    ELSE 'standard' END AS reason) cut
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.replaced_at < c.expires_at AND c.refunded_share IS NOT NULL THEN
            round(c.amount_milliunits * COALESCE(
                CASE WHEN NOT c.is_rest_refunded THEN c.revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                         / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, c.amount_milliunits AS amount,
               c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at,
               CASE WHEN c.is_rest_refunded THEN COALESCE(repaid.amount, 0) - c.amount_milliunits
                    ELSE -round(c.amount_milliunits * c.refunded_share)::bigint END,
               c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND (c.is_rest_refunded OR NOT c.is_upgraded)
        UNION ALL
        -- Apple gives no date where it refunds some of the seats.
        SELECT 'refund', c.cancellation_known_at,
               -round(c.amount_milliunits * c.revoked_seats / GREATEST(1, c.seats)::numeric)::bigint,
               c.cancellation_known_at
        WHERE c.cancelled_at IS NULL AND c.revoked_seats > 0
        UNION ALL
        -- If another subscription replaced it and Apple does not say when, neither the instant nor the amount is known.
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at), -repaid.amount,
               COALESCE(CASE WHEN c.is_rest_refunded THEN c.next_known_at ELSE c.cancellation_known_at END,
                        c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, NOT c.is_rest_refunded)) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;

CREATE OR REPLACE FUNCTION ledger.deliverables(purchase_ids bigint[], subscription_ids bigint[]) RETURNS SETOF ledger.deliverable
LANGUAGE sql STABLE AS $$
    WITH renewable AS MATERIALIZED (
        SELECT d.app_id, d.product_id, d.kind, ledger.delivers_since(d) AS since
        FROM ledger.product d
        WHERE d.kind = 'auto_renewable'
          AND d.app_id IN (SELECT s.app_id FROM ledger.subscription s WHERE s.subscription_id = ANY(subscription_ids))
    )
    SELECT p.app_id, p.environment, o.customer_id, p.product_id, p.kind, p.credit, p.units::bigint * p.quantity,
           p.quantity, p.purchased_at, COALESCE(p.kind <> 'auto_renewable' AND p.purchased_at >= p.since, false),
           p.revoked_at IS NOT NULL, ledger.is_shared(p.facts #>> '{ownership,word}'), 'purchase',
           p.purchase_id, NULL::bigint, NULL::bigint, p.transaction_id, p.original_transaction_id,
           (p.facts #>> '{refunded,percentage}')::int
    FROM (
        SELECT p.*, d.kind, d.credit, d.units, d.since
        FROM unnest(purchase_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = n.id AND p.version > 0 OFFSET 0) p
        LEFT JOIN LATERAL (
            SELECT d.kind, d.credit, d.units, ledger.delivers_since(d) AS since FROM ledger.product d
            WHERE d.app_id = p.app_id AND d.product_id = p.product_id AND d.kind IS NOT NULL OFFSET 0) d ON true
        WHERE d.kind IS NOT NULL OR EXISTS (SELECT FROM ledger.delivery l WHERE l.purchase_id = n.id OFFSET 0)
        OFFSET 0) p
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
          AND o.cause IS DISTINCT FROM 'pointer' OFFSET 0) o ON true
    UNION ALL
    SELECT e.app_id, e.environment, o.customer_id, e.product_id, e.kind, NULL, NULL, e.quantity, e.purchased_at,
           e.kind IS NOT NULL AND (NOT e.is_upgraded OR e.cancellation_reason LIKE 'moved to %' IS NOT TRUE),
           e.cancelled_at IS NOT NULL AND NOT e.is_upgraded AND e.replaced_by IS NULL,
           ledger.is_shared(e.ownership),
           CASE WHEN e.purchased_at > e.first_at THEN 'renewal' ELSE 'purchase' END,
           NULL, e.subscription_id, e.period_id, NULL, e.original_transaction_id, e.revocation_percentage
    FROM (
        SELECT e.*, s.app_id, s.environment, s.original_transaction_id, d.kind
        FROM unnest(subscription_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = n.id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) AS was_delivered,
                   (SELECT min(d.since) FROM renewable d WHERE d.app_id = s.app_id) AS since) has
        CROSS JOIN LATERAL (
            SELECT e.*, min(e.purchased_at) OVER () AS first_at FROM ledger.period e
            WHERE e.subscription_id = n.id AND (has.was_delivered OR s.head_starts_at >= has.since) OFFSET 0) e
        LEFT JOIN renewable d ON d.app_id = s.app_id AND d.product_id = e.product_id AND e.purchased_at >= d.since
        WHERE d.kind IS NOT NULL OR has.was_delivered
        OFFSET 0) e
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.subscription_id = e.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
          AND o.cause IS DISTINCT FROM 'pointer' OFFSET 0) o ON true
    UNION ALL
    SELECT DISTINCT l.app_id, l.environment, NULL::bigint, l.product_id, l.kind, NULL, NULL::bigint, 1,
           NULL::timestamptz, false, true, false, 'purchase', NULL::bigint, l.subscription_id, l.period_id,
           l.transaction_id, l.original_transaction_id, NULL::int
    FROM unnest(subscription_ids) AS n(id)
    CROSS JOIN LATERAL (SELECT l.* FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) l
    WHERE NOT EXISTS (SELECT FROM ledger.period e WHERE e.period_id = l.period_id OFFSET 0)
$$;

CREATE OR REPLACE FUNCTION ledger.paying_transactions(order_ids uuid[], late interval) RETURNS TABLE (
    purchase_id bigint, subscription_id bigint, period_id bigint, environment ledger.environment, product_id text,
    quantity int, purchased_at timestamptz, owner_id bigint, is_claimed boolean, is_renewal boolean,
    transaction_ids text[], account_token text, token_order uuid, token_customer bigint, is_given boolean,
    is_duplicate boolean, proved_for text[], sent_for text[], named_for text[], pays uuid, is_revoked boolean)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, r.product_id,
               min(r.created_at) - paying_transactions.late AS since, array_agg(r.app_account_token) AS tokens
        FROM unnest(order_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id OFFSET 0) r
        CROSS JOIN LATERAL (SELECT c.* FROM ledger.customer c WHERE c.customer_id = r.customer_id OFFSET 0) c
        GROUP BY 1, 2
    ), owned AS MATERIALIZED (
        SELECT o.customer_id, o.purchase_id, o.subscription_id, o.cause
        FROM (SELECT DISTINCT w.customer_id FROM wanted w) w
        CROSS JOIN LATERAL (
            SELECT o.* FROM ledger.ownership o
            WHERE o.customer_id = w.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
    ), thing AS MATERIALIZED (
        SELECT p.app_id, p.purchase_id, NULL::bigint AS subscription_id, NULL::bigint AS period_id, p.environment,
               p.product_id, p.quantity, p.purchased_at, o.customer_id, o.cause, false AS is_renewal, p.transaction_ids,
               lower(p.app_account_token) AS token, p.revoked_at IS NOT NULL AS is_revoked
        FROM owned o
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        JOIN wanted w ON w.customer_id = o.customer_id AND w.product_id = p.product_id
         AND (p.purchased_at >= w.since OR ledger.account_token(p.app_account_token) = ANY(w.tokens))
        WHERE p.version > 0 AND NOT ledger.is_shared(p.facts #>> '{ownership,word}')
          AND (p.revoked_at IS NULL OR EXISTS (
              SELECT FROM ledger.purchase_order r
              WHERE r.purchase_id = p.purchase_id AND r.order_id = ANY(order_ids) OFFSET 0))
        UNION ALL
        SELECT s.app_id, NULL, s.subscription_id, e.period_id, s.environment, e.product_id, e.quantity, e.purchased_at,
               o.customer_id, o.cause,
               EXISTS (
                   SELECT FROM ledger.period b
                   WHERE b.subscription_id = e.subscription_id AND b.expires_at = e.purchased_at OFFSET 0),
               ARRAY(SELECT a.transaction_id FROM ledger.transaction_alias a WHERE a.period_id = e.period_id
                     ORDER BY a.transaction_id COLLATE "C"),
               lower(e.app_account_token), e.cancelled_at IS NOT NULL AND NOT e.is_upgraded
        FROM owned o
        CROSS JOIN LATERAL (
            SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = o.subscription_id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT e.* FROM ledger.period e WHERE e.subscription_id = s.subscription_id OFFSET 0) e
        JOIN wanted w ON w.customer_id = o.customer_id AND w.product_id = e.product_id
         AND (e.purchased_at >= w.since OR ledger.account_token(e.app_account_token) = ANY(w.tokens))
        WHERE NOT ledger.is_shared(e.ownership)
          AND (e.is_upgraded AND e.cancellation_reason LIKE 'moved to %') IS NOT TRUE
          AND (e.cancelled_at IS NULL OR e.is_upgraded OR EXISTS (
              SELECT FROM ledger.purchase_order r
              WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id
                AND r.order_id = ANY(order_ids) OFFSET 0))
    ), given AS MATERIALIZED (
        SELECT t.*, l.is_given, l.is_twin
        FROM thing t
        CROSS JOIN LATERAL (
            SELECT bool_or(l.skip_reason IS NULL AND NOT EXISTS (
                               SELECT FROM ledger.due_delivery q WHERE q.delivery_id = l.delivery_id OFFSET 0)
                           OR COALESCE(l.skip_reason NOT IN ('claimed_by_order', 'possible_duplicate'), false)) AS is_given,
                   bool_or(l.skip_reason = 'possible_duplicate') AS is_twin
            FROM (
                SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                UNION ALL
                SELECT l.* FROM ledger.delivery l
                WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l) l
    ), twin AS MATERIALIZED (
        -- What was delivered is read once, not once for each transaction.
        SELECT w.customer_id, p.environment, p.product_id, p.purchased_at, p.quantity, p.purchase_id,
               lower(p.app_account_token) AS token
        FROM (SELECT DISTINCT w.customer_id FROM wanted w) w
        CROSS JOIN LATERAL (
            SELECT l.purchase_id FROM ledger.delivery l
            WHERE l.customer_id = w.customer_id AND l.reason = 'purchase'
              AND l.skip_reason IS DISTINCT FROM 'claimed_by_order' OFFSET 0) l
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
        WHERE p.purchased_at = ANY(ARRAY(SELECT g.purchased_at FROM given g WHERE g.is_given IS NULL))
    ), sent AS MATERIALIZED (
        SELECT x.order_id, x.receipt_id, x.is_proved, x.transaction_id
        FROM unnest(order_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT x.* FROM ledger.order_receipt x WHERE x.order_id = n.id OFFSET 0) x
    )
    SELECT t.purchase_id, t.subscription_id, t.period_id, t.environment, t.product_id, t.quantity, t.purchased_at,
           t.customer_id, t.cause IS NOT DISTINCT FROM 'proof', t.is_renewal, t.transaction_ids, t.token,
           (SELECT n.order_id FROM ledger.purchase_order n
            WHERE n.app_account_token = ledger.account_token(t.token) AND n.app_id = t.app_id OFFSET 0),
           (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
            WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token)) LIMIT 1),
           COALESCE(t.is_given, false),
           COALESCE(t.is_twin, false) OR t.is_given IS NULL AND EXISTS (
               SELECT FROM twin o
               WHERE o.customer_id = t.customer_id AND o.environment = t.environment AND o.product_id = t.product_id
                 AND o.purchased_at = t.purchased_at AND o.quantity = t.quantity AND o.purchase_id <> t.purchase_id
                 AND (o.token <> t.token) IS NOT TRUE),
           COALESCE(held.proved, '{}'), COALESCE(held.named, '{}'),
           ARRAY(SELECT x.order_id::text FROM sent x WHERE x.transaction_id = ANY(t.transaction_ids)),
           COALESCE((SELECT r.order_id FROM ledger.purchase_order r WHERE r.purchase_id = t.purchase_id OFFSET 0),
                    (SELECT r.order_id FROM ledger.purchase_order r
                     WHERE r.subscription_id = t.subscription_id AND r.period_id = t.period_id OFFSET 0)),
           t.is_revoked
    FROM given t
    CROSS JOIN LATERAL (
        SELECT array_agg(x.order_id::text) FILTER (WHERE x.is_proved) AS proved,
               array_agg(x.order_id::text) FILTER (WHERE NOT x.is_proved) AS named
        FROM sent x WHERE ledger.holds(x.receipt_id, t.purchase_id, t.subscription_id)) held;
END $$;
