-- Every charge with its price, and revenue with Apple's commission, as known at an instant.

-- In this and the next files known_at 'infinity' means now, and streams limits a function to these subscriptions (null:
-- all). The functions in SQL are one SELECT each without SECURITY DEFINER, so that the planner looks into them.
CREATE FUNCTION ledger.stated_charge_price(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    is_purchase boolean, stream_id bigint, charge_id bigint, purchased_at timestamptz, price_milliunits bigint,
    currency text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT DISTINCT ON (newest.is_purchase, newest.charge_id)
           newest.is_purchase, newest.stream_id, newest.charge_id, newest.purchased_at, newest.price_milliunits,
           newest.currency
    FROM (
        SELECT DISTINCT ON (h.stated_id) h.*
        FROM (
            SELECT w.stated_id, w.stated_at, w.price_milliunits, w.currency, false AS is_purchase, p.stream_id, p.charge_id,
                   p.purchased_at
            FROM perennial.period_stated_price w
            JOIN perennial.period_version p ON p.stream_id = w.stream_id
                -- Apple's clock and ours may differ by a little.
                AND p.purchased_at <= w.stated_at + interval '5 minutes'
            WHERE w.price_milliunits IS NOT NULL AND NOT p.is_family_shared
              AND p.known_from <= known_at AND COALESCE(p.known_until > known_at, true)
              AND w.stated_id IN (
                  SELECT x.stated_id FROM perennial.stated_price x
                  WHERE x.price_milliunits IS NOT NULL AND x.stated_at <= known_at
                    AND (streams IS NULL OR (x.kind = 'subscription' AND x.stream_id = ANY (streams))))
            UNION ALL
            SELECT w.stated_id, w.stated_at, w.price_milliunits, w.currency, true, p.stream_id, p.stream_id, p.purchased_at
            FROM perennial.purchase_stated_price w
            JOIN perennial.purchase_history p ON p.stream_id = w.stream_id
                AND p.purchased_at <= w.stated_at + interval '5 minutes'
            WHERE w.price_milliunits IS NOT NULL
              AND p.known_from <= known_at AND COALESCE(p.known_until > known_at, true)
              AND w.stated_id IN (
                  SELECT x.stated_id FROM perennial.stated_price x
                  WHERE x.price_milliunits IS NOT NULL AND x.stated_at <= known_at
                    AND (streams IS NULL OR (x.kind = 'subscription' AND x.stream_id = ANY (streams))))) h
        ORDER BY h.stated_id, h.purchased_at DESC, h.is_purchase DESC, h.charge_id) newest
    ORDER BY newest.is_purchase, newest.charge_id, newest.stated_at DESC, newest.stated_id DESC
$$;
COMMENT ON FUNCTION ledger.stated_charge_price IS
    'The charge that each reported price is about, as known at an instant: the newest thing bought when the upload '
    'came';

CREATE FUNCTION ledger.price_basis(
    offer text, is_family_shared boolean, apple bigint, stated bigint, storefront bigint, "default" bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN is_family_shared THEN NULL
                WHEN apple IS NOT NULL THEN 'apple'
                WHEN offer IS NOT DISTINCT FROM 'trial' THEN NULL
                WHEN stated IS NOT NULL THEN 'stated'
                WHEN offer IS NOT NULL THEN 'unknown'
                WHEN storefront IS NOT NULL THEN 'storefront'
                WHEN "default" IS NOT NULL THEN 'default'
                ELSE 'unknown' END
$$;
COMMENT ON FUNCTION ledger.price_basis IS
    'Where the price of a charge comes from, given the prices that there are: Apple''s in a signed transaction; else '
    'stated at intake or import; else the catalog''s of the storefront; else that of the default one; else unknown. '
    'The catalog does not price offers. Trials and what a family shares are no charges: null, but for a trial that '
    'Apple itself prices, at 0';

CREATE FUNCTION ledger.storefronts_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (stream_id bigint, storefront text, valid_from timestamptz, valid_until timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT w.stream_id, w.storefront,
           CASE WHEN row_number() OVER stream = 1 THEN '-infinity' ELSE w.stated_at - interval '1 day' END,
           COALESCE(lead(w.stated_at) OVER stream - interval '1 day', 'infinity')
    FROM perennial.period_stated_price w
    WHERE w.storefront IS NOT NULL AND w.stated_at <= known_at AND (streams IS NULL OR w.stream_id = ANY (streams))
    WINDOW stream AS (PARTITION BY w.stream_id ORDER BY w.stated_at, w.stated_id)
$$;
COMMENT ON FUNCTION ledger.storefronts_of IS
    'Where the customer of a subscription buys: what an upload reports holds from a day before it until the next '
    'report, and the first report holds from ever';

CREATE FUNCTION ledger.period_charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int)
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
           basis.word, c.first_known_at, c.cancellation_known_at, c.revocation_percentage
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

-- streams names subscriptions, so with it there are no one-time purchases.
CREATE FUNCTION ledger.charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.bundle_id, c.environment, 'subscription', c.stream_id, c.charge_id, c.original_transaction_id,
           c.product_id, c.quantity, c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer,
           c.is_family_shared, c.storefront, c.amount_milliunits, c.currency, c.price_basis, c.first_known_at,
           c.cancellation_known_at, c.revocation_percentage
    FROM ledger.period_charges_of(known_at, streams) c
    UNION ALL
    SELECT c.bundle_id, c.environment, 'purchase', c.stream_id, c.stream_id, c.original_transaction_id, c.product_id,
           c.quantity, c.purchased_at, NULL, c.revoked_at, false, NULL, false, place.storefront,
           CASE basis.word WHEN 'apple' THEN c.price_milliunits
                           WHEN 'stated' THEN c.quantity * stated.price_milliunits
                           WHEN 'storefront' THEN c.quantity * there.price_milliunits
                           WHEN 'default' THEN c.quantity * anywhere.price_milliunits END,
           CASE basis.word WHEN 'apple' THEN c.currency WHEN 'stated' THEN stated.currency
                           WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency END,
           basis.word, c.first_known_at, c.revocation_known_at, c.revocation_percentage
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
        SELECT ledger.price_basis(NULL, false, c.price_milliunits, stated.price_milliunits, there.price_milliunits,
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
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM ledger.charges_of(known_at, NULL)
$$;
COMMENT ON FUNCTION perennial.charges_as_known IS 'ledger.charges_of for every subscription and one-time purchase';

-- The function sorts once: it adds paid service up over the whole subscription, and subtracts what came before the last
-- gap.
CREATE FUNCTION ledger.revenue_of(known_at timestamptz, streams bigint[])
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
                SELECT k.*,
                       k.offer IS DISTINCT FROM 'trial' AND NOT k.is_family_shared
                           AND (k.cancelled_at IS NULL OR k.is_upgraded) AS is_service,
                       LEAST(k.expires_at, k.replaced_at) AS serves_until
                FROM (
                    SELECT h.*,
                           -- A sandbox row may not say when it was replaced: when the next period began, or at once if
                           -- it was charged ahead of a period that another one had already begun to cover.
                           CASE WHEN h.is_upgraded THEN COALESCE(h.cancelled_at, CASE
                               WHEN lag(h.expires_at) OVER stream > h.purchased_at THEN h.purchased_at
                               ELSE lead(h.purchased_at) OVER stream END) END AS replaced_at
                    FROM ledger.charges_of(known_at, streams) h
                    WINDOW stream AS (PARTITION BY h.stream_id, h.kind ORDER BY h.purchased_at, h.charge_id)) k) r
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
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, c.amount_milliunits AS amount,
               c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at, -round(c.amount_milliunits * COALESCE(c.revocation_percentage / 100000.0, 1))::bigint,
               c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND NOT c.is_upgraded
        UNION ALL
        -- If another subscription replaced it and Apple does not say when, neither the instant nor the amount is known.
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at),
               CASE WHEN c.replaced_at IS NOT NULL THEN
                   -round(c.amount_milliunits * COALESCE(c.revocation_percentage / 100000.0, LEAST(
                       1, extract(epoch FROM c.expires_at - c.replaced_at)
                          / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END,
               COALESCE(c.cancellation_known_at, c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, true)) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;
COMMENT ON FUNCTION ledger.revenue_of IS
    'Every charge, refund and proration of a replaced period as known at an instant, signed, with Apple''s '
    'commission: 15 % in the Small Business Program, 15 % after a year of paid service, else 30 %. Paid service '
    'adds up the paid periods of the subscription before the charge: refunded ones do not count, replaced ones '
    'count until their replacement. A refund or proration is the share that Apple states, else the whole price or the '
    'share of the time that was left. Paid service begins anew after more than 60 days without, from the end of paid service; '
    'trials, family sharing and refunded periods are none. Proceeds are before taxes, which Apple does not report';
