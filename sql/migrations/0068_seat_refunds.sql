-- Seats are refunded at the instants at which that was learnt, an unread price is no catalog's, transactions of one period may
-- begin together, and what follows a term is no payment of it.

ALTER TABLE ledger.period_history ADD COLUMN cancellation_reason text;
COMMENT ON COLUMN ledger.period_history.cancellation_reason IS 'As in ledger.period';
COMMENT ON COLUMN ledger.period.price_milliunits IS
    'Apple''s price of the whole quantity in thousandths of price_currency, of a group''s seats what their tiers add up '
    'to, of a term one payment; null: no signed transaction gave one, or, beside a price_currency, one that cannot be read';
COMMENT ON COLUMN ledger.period.cancellation_recorded_at IS
    'When its cancellation was stored, or last the number of its refunded seats, by our clock';

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
           revocation_percentage, sale, cancellation_reason, recorded_at, cancellation_recorded_at,
           COALESCE(facts_recorded_at, recorded_at) AS known_from, NULL::timestamptz AS known_until
    FROM ledger.period WHERE NOT is_upgraded OR cancellation_reason LIKE 'moved to %' IS NOT TRUE
    UNION ALL
    SELECT period_id, subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded,
           is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
           revocation_percentage, sale, cancellation_reason, recorded_at, cancellation_recorded_at, lower(known),
           upper(known)
    FROM ledger.period_history WHERE NOT isempty(known)) p;

CREATE FUNCTION ledger.seat_refunds_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (stream_id bigint, charge_id bigint, at timestamptz, before int, after int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.stream_id, k.charge_id, k.at,
           COALESCE(lag(k.revoked) OVER (PARTITION BY k.stream_id, k.charge_id ORDER BY k.revoked), 0), k.revoked
    FROM (
        SELECT r.stream_id, r.charge_id, r.revoked,
               min(min(r.at)) OVER (PARTITION BY r.stream_id, r.charge_id ORDER BY r.revoked DESC) AS at
        FROM (
            -- A number that was taken back since never counts; a refund of all takes none of these back.
            SELECT v.stream_id, v.charge_id, v.cancelled_at, v.cancellation_known_at AS at,
                   LEAST(v.revoked_seats, CASE WHEN first_value(v.cancelled_at) OVER newest IS NULL
                                               THEN first_value(v.revoked_seats) OVER newest END) AS revoked
            FROM perennial.period_version v
            WHERE v.seats IS NOT NULL AND v.known_from <= seat_refunds_of.known_at
              AND (streams IS NULL OR v.stream_id = ANY (streams))
            WINDOW newest AS (PARTITION BY v.stream_id, v.charge_id ORDER BY v.known_from DESC)) r
        WHERE r.cancelled_at IS NULL AND r.revoked > 0
        GROUP BY r.stream_id, r.charge_id, r.revoked) k
$$;
COMMENT ON FUNCTION ledger.seat_refunds_of IS
    'When it was learnt that Apple had refunded some of the seats of a period, as known at an instant: how many were '
    'refunded before and after. Apple gives no date for them. What a refund of the whole period adds is not among them';

DROP FUNCTION ledger.price_basis(text, boolean, bigint, bigint, bigint, bigint);
CREATE FUNCTION ledger.price_basis(
    offer text, is_family_shared boolean, apple bigint, stated bigint, storefront bigint, "default" bigint,
    apple_currency text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN is_family_shared THEN NULL
                WHEN apple IS NOT NULL THEN 'apple'
                WHEN offer IS NOT DISTINCT FROM 'trial' THEN NULL
                WHEN stated IS NOT NULL THEN 'stated'
                WHEN offer IS NOT NULL OR apple_currency IS NOT NULL THEN 'unknown'
                WHEN storefront IS NOT NULL THEN 'storefront'
                WHEN "default" IS NOT NULL THEN 'default'
                ELSE 'unknown' END
$$;
COMMENT ON FUNCTION ledger.price_basis IS
    'Where the price of a charge comes from, given the prices that there are: Apple''s in a signed transaction; else '
    'stated at intake or import; else the catalog''s of the storefront; else that of the default one; else unknown. '
    'The catalog does not price offers, nor what Apple states in a form that cannot be read: then there is its currency '
    'alone. Trials and what a family shares are no charges: null, but for a trial that Apple itself prices, at 0';

-- Functions that differ from their last form in an argument or a word.
DO $$
DECLARE
    changed record;
    present text;
BEGIN
    FOR changed IN
        SELECT c.* FROM (VALUES
            ('period_charges_of', 'anywhere.price_milliunits) AS word', 'anywhere.price_milliunits, c.currency) AS word'),
            ('charges_of', 'anywhere.price_milliunits) AS word', 'anywhere.price_milliunits, c.currency) AS word'),
            ('paying_of', 'anywhere.price_milliunits) AS basis', 'anywhere.price_milliunits, r.currency) AS basis'),
            -- What a group pays is not known where one of its transactions cannot be read.
            ('charge_runs_of',
             'COALESCE(sum(part.amount) FILTER (WHERE o.cancelled_at IS NULL), sum(part.amount))::bigint',
             'CASE WHEN bool_and(o.price_milliunits IS NOT NULL OR o.currency IS NULL) THEN '
                 'COALESCE(sum(part.amount) FILTER (WHERE o.cancelled_at IS NULL), sum(part.amount))::bigint END'),
            -- Access that another customer bought ends without a refund.
            ('entitlement_spans', 'p.original_transaction_id, c.purchased_at,',
             'p.original_transaction_id, ledger.is_shared(p.facts #>> ''{ownership,word}'') AS is_shared, c.purchased_at,'),
            ('entitlement_spans', 'WHEN b.revoked_at < ''infinity'' THEN ''refund'' ELSE',
             'WHEN b.revoked_at < ''infinity'' THEN CASE WHEN b.is_shared THEN ''family'' ELSE ''refund'' END ELSE'))
            AS c(name, was, is_now)
    LOOP
        present := pg_get_functiondef(('ledger.' || changed.name)::regproc);
        ASSERT strpos(present, changed.was) > 0, changed.name;
        EXECUTE replace(present, changed.was, changed.is_now);
    END LOOP;
END $$;

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
    LEFT JOIN (
        SELECT s.charge_id, array_agg(s.at ORDER BY s.after) AS ats, array_agg(s.before ORDER BY s.after) AS befores,
               array_agg(s.after ORDER BY s.after) AS afters, max(s.after) AS revoked
        FROM ledger.seat_refunds_of(known_at, streams) s GROUP BY s.charge_id) seat
        ON c.kind = 'subscription' AND seat.charge_id = c.charge_id
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
    -- What a refund or a proration of the whole is about: the price without the seats that were refunded before.
    CROSS JOIN LATERAL (
        SELECT (c.amount_milliunits - COALESCE(round(c.amount_milliunits * seat.revoked / GREATEST(1, c.seats)::numeric), 0))::bigint
                   AS amount) kept
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.replaced_at < c.expires_at AND c.refunded_share IS NOT NULL THEN
            round(kept.amount * COALESCE(
                CASE WHEN NOT c.is_rest_refunded THEN c.revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                         / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, c.amount_milliunits AS amount,
               c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at,
               CASE WHEN c.is_rest_refunded THEN COALESCE(repaid.amount, 0) - kept.amount
                    ELSE -round(kept.amount * c.refunded_share)::bigint END,
               c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND (c.is_rest_refunded OR NOT c.is_upgraded)
        UNION ALL
        -- Apple gives no date where it refunds some of the seats.
        SELECT 'refund', s.at,
               (round(c.amount_milliunits * s.before / GREATEST(1, c.seats)::numeric)
                - round(c.amount_milliunits * s.after / GREATEST(1, c.seats)::numeric))::bigint, s.at
        FROM unnest(seat.ats, seat.befores, seat.afters) AS s(at, before, after)
        UNION ALL
        -- If another subscription replaced it and Apple does not say when, neither the instant nor the amount is known.
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at), -repaid.amount,
               COALESCE(CASE WHEN c.is_rest_refunded THEN c.next_known_at ELSE c.cancellation_known_at END,
                        c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, NOT c.is_rest_refunded)) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;
COMMENT ON FUNCTION ledger.revenue_of IS
    'Every charge, refund and proration of a replaced period as known at an instant, signed, with Apple''s '
    'commission: 15 % in the Small Business Program, 15 % after a year of paid service, else 30 %. Paid service '
    'adds up the paid periods of the subscription before the charge: refunded ones do not count, replaced ones '
    'count until their replacement. A refund or proration is the share that Apple states, else the whole price or the '
    'share of the time that was left. Refunded seats are refunds of their own, and a later refund of the whole is the rest. '
    'Paid service begins anew after more than 60 days without, from the end of paid service; '
    'trials, family sharing and refunded periods are none. Proceeds are before taxes, which Apple does not report';

CREATE OR REPLACE FUNCTION ledger.money_of(are_purchases boolean[], streams bigint[], known_ats timestamptz[], others timestamptz[])
RETURNS TABLE (
    place bigint, occurred_at timestamptz, kind text, product_id text, amount_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE AS $$
    WITH bought AS (
        SELECT q.*, c.*,
               CASE WHEN c.cancelled_at IS NULL AND lag(c.expires_at) OVER stream > c.purchased_at THEN c.purchased_at
                    ELSE lead(c.purchased_at) OVER stream END AS followed_at
        FROM unnest(are_purchases, streams, known_ats, others)
            WITH ORDINALITY AS q(is_purchase, stream_id, known_at, other, place)
        CROSS JOIN LATERAL (
            SELECT k.bundle_id, v.charge_id, v.product_id, v.quantity, v.purchased_at, v.expires_at, v.cancelled_at,
                   v.is_upgraded, v.offer, v.is_family_shared, v.price_milliunits, v.currency, v.revocation_percentage,
                   v.known_from, v.known_until, v.cancellation_known_at, v.seats, v.revoked_seats, v.refunded_share
            FROM perennial.period_version v JOIN perennial.subscription_key k USING (stream_id)
            WHERE NOT q.is_purchase AND v.stream_id = q.stream_id
            UNION ALL
            SELECT v.bundle_id, v.stream_id, v.product_id, v.quantity, v.purchased_at, NULL, v.revoked_at, false, NULL,
                   v.is_family_shared, v.price_milliunits, v.currency, v.revocation_percentage, v.known_from, v.known_until,
                   v.revocation_known_at, NULL, 0, v.refunded_share
            FROM perennial.purchase_history v WHERE q.is_purchase AND v.stream_id = q.stream_id) c
        WHERE c.known_from <= q.known_at AND COALESCE(c.known_until > q.known_at, true)
        WINDOW stream AS (PARTITION BY q.place ORDER BY c.purchased_at, c.charge_id)
    ), charge AS (
        SELECT b.*, CASE WHEN r.is_rest_refunded THEN b.followed_at
                         WHEN b.is_upgraded THEN LEAST(b.cancelled_at, b.followed_at) END AS replaced_at, r.is_rest_refunded
        FROM bought b
        CROSS JOIN LATERAL (
            SELECT COALESCE(b.is_upgraded AND b.revocation_percentage = 100000 AND b.cancelled_at >= b.purchased_at
                            AND COALESCE(b.cancelled_at NOT BETWEEN b.followed_at - interval '1 minute'
                                                                AND b.followed_at + interval '1 minute',
                                         b.cancelled_at >= b.expires_at), false) AS is_rest_refunded) r
        WHERE NOT b.is_family_shared AND b.offer IS DISTINCT FROM 'trial'
          -- What was the same at the other instant has the same amounts, unless its neighbours decide them.
          AND (b.other IS NULL OR b.is_upgraded OR b.known_from > b.other OR b.known_until <= b.other)
    )
    SELECT c.place, moved.occurred_at, moved.kind, c.product_id, moved.amount, price.currency, basis.word
    FROM charge c
    CROSS JOIN LATERAL (
        -- What uploads reported that may be about it.
        SELECT ARRAY(
            SELECT s FROM perennial.period_stated_price s
            WHERE NOT c.is_purchase AND s.stream_id = c.stream_id AND s.stated_at <= c.known_at
            UNION ALL
            SELECT ROW(s.*)::perennial.period_stated_price FROM perennial.purchase_stated_price s
            WHERE c.is_purchase AND s.stream_id = c.stream_id AND s.stated_at <= c.known_at) AS stated OFFSET 0) reported
    LEFT JOIN LATERAL (
        -- A price is about the newest thing bought when the upload came.
        SELECT w.price_milliunits, w.currency
        FROM unnest(reported.stated) w
        WHERE w.price_milliunits IS NOT NULL AND c.purchased_at <= w.stated_at + interval '5 minutes'
          AND NOT EXISTS (
              SELECT FROM perennial.period_stated_price s
              CROSS JOIN LATERAL (
                  SELECT FROM perennial.period_version v
                  WHERE v.stream_id = s.stream_id AND v.known_from <= c.known_at
                    AND COALESCE(v.known_until > c.known_at, true) AND NOT v.is_family_shared
                    AND v.purchased_at <= w.stated_at + interval '5 minutes'
                    AND (v.purchased_at > c.purchased_at
                         OR v.purchased_at = c.purchased_at AND NOT c.is_purchase AND v.charge_id < c.charge_id)
                  LIMIT 1) newer
              WHERE s.stated_id = w.stated_id)
          AND NOT EXISTS (
              SELECT FROM perennial.purchase_stated_price s
              JOIN perennial.purchase_history v USING (stream_id)
              WHERE s.stated_id = w.stated_id AND v.known_from <= c.known_at AND COALESCE(v.known_until > c.known_at, true)
                AND v.purchased_at <= w.stated_at + interval '5 minutes'
                AND (v.purchased_at > c.purchased_at
                     OR v.purchased_at = c.purchased_at AND (NOT c.is_purchase OR v.stream_id < c.charge_id)))
        ORDER BY w.stated_at DESC, w.stated_id DESC LIMIT 1) stated ON true
    LEFT JOIN LATERAL (
        SELECT w.storefront
        FROM (SELECT s.storefront,
                     CASE WHEN row_number() OVER stated = 1 THEN '-infinity' ELSE s.stated_at - interval '1 day' END AS since,
                     COALESCE(lead(s.stated_at) OVER stated - interval '1 day', 'infinity') AS until
              FROM unnest(reported.stated) s WHERE s.storefront IS NOT NULL
              WINDOW stated AS (ORDER BY s.stated_at, s.stated_id)) w
        WHERE w.since <= c.purchased_at AND c.purchased_at < w.until) spot ON true
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = spot.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= c.known_at AND COALESCE(there.known_until > c.known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= c.known_at AND COALESCE(anywhere.known_until > c.known_at, true)
    CROSS JOIN LATERAL (
        SELECT ledger.price_basis(c.offer, c.is_family_shared, c.price_milliunits, stated.price_milliunits,
                                  there.price_milliunits, anywhere.price_milliunits, c.currency) AS word) basis
    CROSS JOIN LATERAL (
        SELECT CASE basis.word WHEN 'apple' THEN c.price_milliunits
                               WHEN 'stated' THEN c.quantity * stated.price_milliunits
                               WHEN 'storefront' THEN c.quantity * there.price_milliunits
                               WHEN 'default' THEN c.quantity * anywhere.price_milliunits END AS amount,
               CASE basis.word WHEN 'apple' THEN c.currency WHEN 'stated' THEN stated.currency
                               WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency
                               END AS currency) price
    LEFT JOIN LATERAL (
        SELECT array_agg(s.at ORDER BY s.after) AS ats, array_agg(s.before ORDER BY s.after) AS befores,
               array_agg(s.after ORDER BY s.after) AS afters, max(s.after) AS revoked
        FROM ledger.seat_refunds_of(c.known_at, NULL) s
        WHERE c.seats IS NOT NULL AND s.stream_id = c.stream_id AND s.charge_id = c.charge_id) seat ON true
    -- What a refund or a proration of the whole is about: the price without the seats that were refunded before.
    CROSS JOIN LATERAL (
        SELECT (price.amount - COALESCE(round(price.amount * seat.revoked / GREATEST(1, c.seats)::numeric), 0))::bigint
                   AS amount) kept
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.replaced_at < c.expires_at AND c.refunded_share IS NOT NULL THEN
            round(kept.amount * COALESCE(
                CASE WHEN NOT c.is_rest_refunded THEN c.revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                         / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, price.amount
        UNION ALL
        SELECT 'refund', c.cancelled_at,
               CASE WHEN c.is_rest_refunded THEN COALESCE(repaid.amount, 0) - kept.amount
                    ELSE -round(kept.amount * c.refunded_share)::bigint END
        WHERE c.cancelled_at IS NOT NULL AND (c.is_rest_refunded OR NOT c.is_upgraded)
        UNION ALL
        SELECT 'refund', s.at,
               (round(price.amount * s.before / GREATEST(1, c.seats)::numeric)
                - round(price.amount * s.after / GREATEST(1, c.seats)::numeric))::bigint
        FROM unnest(seat.ats, seat.befores, seat.afters) AS s(at, before, after)
        UNION ALL
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at), -repaid.amount
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, NOT c.is_rest_refunded)) moved
$$;

CREATE OR REPLACE FUNCTION ledger.renewals_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.bundle_id, k.environment, p.stream_id, p.product_id, p.expires_at, p.next_purchased_at,
           p.next_is_paid AND next.kind <> 'subscription.reactivated',
           COALESCE(next.kind = 'subscription.recovered', false)
    FROM (
        SELECT c.stream_id, c.product_id, c.expires_at, paid.is_paid, c.payment_number, c.payments,
               NOT c.is_upgraded AND COALESCE(c.cancelled_at >= c.expires_at, true) AS comes_to_its_end,
               lead(c.charge_id) OVER stream AS next_charge_id, lead(c.purchased_at) OVER stream AS next_purchased_at,
               lead(paid.is_paid) OVER stream AS next_is_paid
        FROM perennial.period_version c
        -- What is neither a trial nor shared by the family was paid.
        CROSS JOIN LATERAL (SELECT NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial' AS is_paid) paid
        WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
          -- Seats that were added to a period are of its transaction.
          AND NOT (c.is_one_of_several AND EXISTS (
              SELECT FROM perennial.period_version o
              WHERE o.stream_id = c.stream_id AND o.expires_at = c.expires_at
                AND (o.purchased_at, o.charge_id) < (c.purchased_at, c.charge_id)
                AND o.known_from <= known_at AND COALESCE(o.known_until > known_at, true)))
          AND COALESCE(c.cancelled_at > c.purchased_at, true) AND (streams IS NULL OR c.stream_id = ANY (streams))
        WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.expires_at, c.charge_id)) p
    JOIN perennial.subscription_key k USING (stream_id)
    LEFT JOIN ledger.period_events_of(known_at, streams) reported
        ON reported.charge_id = p.next_charge_id AND reported.kind <> 'product.changed'
    CROSS JOIN LATERAL (
        SELECT CASE WHEN reported.kind IS NOT NULL THEN reported.kind
                    WHEN p.next_purchased_at IS NOT NULL THEN ledger.kind_of_return(
                        k.environment, p.next_purchased_at - p.expires_at,
                        p.next_purchased_at > p.expires_at AND EXISTS (
                            SELECT FROM perennial.timeline t
                            WHERE t.subscription_id = p.stream_id
                              AND t.valid_from <= p.expires_at AND p.expires_at < t.valid_until
                              AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
                              AND t.state IN ('grace_period', 'billing_retry'))) END AS kind) next
    -- Within a term the next payment is owed: only its last one can renew or not.
    WHERE p.is_paid AND p.comes_to_its_end AND COALESCE(p.payment_number >= p.payments, true)
$$;

CREATE OR REPLACE VIEW perennial.renewal_now AS
SELECT a.bundle_id, s.environment::text AS environment, s.subscription_id AS stream_id, s.original_transaction_id,
       s.will_renew, s.expires_at, s.renews_to_product_id,
       CASE WHEN s.renewal ->> 'promotional_offer_id' IS NOT NULL THEN 'promotional_offer'
            WHEN s.renewal ->> 'offer_code_ref_name' IS NOT NULL THEN 'offer_code' END AS offer,
       'price_consent_pending' = ANY (s.flags) AS price_consent_pending, ledger.as_of(s, poller) AS as_of,
       ledger.checked_at(s, poller) AS checked_at, ledger.next_check_at(s, poller) AS next_check_at, s.next_payment,
       COALESCE((s.sale ->> 'payment_number')::int < (s.sale ->> 'payments')::int, false) AS is_within_term,
       'change_scheduled' = ANY (s.flags) AS change_scheduled
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.version > 0;
COMMENT ON COLUMN perennial.renewal_now.is_within_term IS
    'Whether the next payment is another one of the term of payments that runs, so that nothing changes with it';
COMMENT ON COLUMN perennial.renewal_now.change_scheduled IS 'Whether another product or another plan follows';

-- Every subscription is summarised again; until then reports read the history.
UPDATE ledger.summary_progress SET round_at = 0, rounds = 0, price_mark = NULL;
