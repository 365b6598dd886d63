-- Reports at a million subscriptions: each history in one sort, and what does not change is not told again.

-- Every period as said for a while, alone and with the names of what it belongs to. Plain joins, so that the planner looks
-- into them.
CREATE VIEW perennial.period_told AS
SELECT p.subscription_id AS stream_id, p.period_id AS charge_id, p.product_id, p.quantity, p.purchased_at, p.expires_at,
       p.cancelled_at, p.is_upgraded,
       CASE WHEN p.is_trial THEN 'trial' WHEN p.is_intro THEN 'intro'
            WHEN p.promotional_offer_id IS NOT NULL THEN 'promotional_offer'
            WHEN p.offer_code_ref_name IS NOT NULL THEN 'offer_code' END AS offer,
       p.ownership IS NOT DISTINCT FROM 'FAMILY_SHARED' AS is_family_shared,
       p.recorded_at AS first_known_at, p.cancellation_recorded_at AS cancellation_known_at, p.known_from, p.known_until
FROM (
    SELECT period_id, subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
           is_intro, promotional_offer_id, offer_code_ref_name, ownership, recorded_at, cancellation_recorded_at,
           COALESCE(facts_recorded_at, recorded_at) AS known_from, NULL::timestamptz AS known_until
    FROM ledger.period
    UNION ALL
    SELECT period_id, subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
           is_intro, promotional_offer_id, offer_code_ref_name, ownership, recorded_at, cancellation_recorded_at,
           lower(known), upper(known)
    FROM ledger.period_past WHERE NOT isempty(known)) p;
CREATE VIEW perennial.subscription_key AS
SELECT s.subscription_id AS stream_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id
FROM ledger.subscription s JOIN ledger.app a USING (app_id);
CREATE VIEW perennial.period_history AS
SELECT k.bundle_id, k.environment, p.stream_id, p.charge_id, k.original_transaction_id, p.product_id, p.quantity,
       p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.offer, p.is_family_shared,
       p.first_known_at, p.cancellation_known_at, p.known_from, p.known_until
FROM perennial.period_told p JOIN perennial.subscription_key k USING (stream_id);

-- As before, of its two halves.
CREATE VIEW perennial.purchase_history AS
SELECT a.bundle_id, p.environment::text AS environment, p.purchase_id AS stream_id, p.original_transaction_id, p.product_id,
       h.quantity, h.purchased_at, h.revoked_at, p.first_recorded_at AS first_known_at,
       h.revocation_recorded_at AS revocation_known_at, h.known_from, h.known_until
FROM (
    SELECT purchase_id, quantity, purchased_at, revoked_at, revocation_recorded_at,
           COALESCE(facts_recorded_at, first_recorded_at) AS known_from, NULL::timestamptz AS known_until
    FROM ledger.purchase WHERE version > 0
    UNION ALL
    SELECT purchase_id, quantity, purchased_at, revoked_at, revocation_recorded_at, lower(known), upper(known)
    FROM ledger.purchase_past WHERE NOT isempty(known)) h
JOIN ledger.purchase p USING (purchase_id)
JOIN ledger.app a USING (app_id);
CREATE OR REPLACE VIEW perennial.charge_history AS
SELECT bundle_id, environment, 'subscription' AS kind, stream_id, charge_id, original_transaction_id, product_id, quantity,
       purchased_at, expires_at, cancelled_at, is_upgraded, offer, is_family_shared, first_known_at, cancellation_known_at,
       known_from, known_until
FROM perennial.period_history
UNION ALL
SELECT bundle_id, environment, 'purchase', stream_id, stream_id, original_transaction_id, product_id, quantity,
       purchased_at, NULL, revoked_at, false, NULL, false, first_known_at, revocation_known_at, known_from, known_until
FROM perennial.purchase_history;

-- What uploads said, for each thing it may speak of: as before, of its two halves.
CREATE VIEW perennial.period_price_said AS
SELECT w.said_id, w.said_at, l.subscription_id AS stream_id, w.storefront, w.price_milliunits, w.currency
FROM ledger.said_price w JOIN ledger.receipt_subscription l USING (receipt_id);
CREATE VIEW perennial.purchase_price_said AS
SELECT w.said_id, w.said_at, l.purchase_id AS stream_id, w.storefront, w.price_milliunits, w.currency
FROM ledger.said_price w JOIN ledger.receipt_purchase l USING (receipt_id);
CREATE OR REPLACE VIEW perennial.price_said AS
SELECT said_id, said_at, 'subscription' AS kind, stream_id, storefront, price_milliunits, currency
FROM perennial.period_price_said
UNION ALL
SELECT said_id, said_at, 'purchase', stream_id, storefront, price_milliunits, currency FROM perennial.purchase_price_said;

-- Which charge every said price speaks of, as known at an instant: the newest thing bought when it was said.
CREATE FUNCTION perennial.price_speaks_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    is_purchase boolean, stream_id bigint, charge_id bigint, purchased_at timestamptz, price_milliunits bigint, currency text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT DISTINCT ON (newest.is_purchase, newest.charge_id)
           newest.is_purchase, newest.stream_id, newest.charge_id, newest.purchased_at, newest.price_milliunits,
           newest.currency
    FROM (
        SELECT DISTINCT ON (h.said_id) h.*
        FROM (
            SELECT w.said_id, w.said_at, w.price_milliunits, w.currency, false AS is_purchase, p.stream_id, p.charge_id,
                   p.purchased_at
            FROM perennial.period_price_said w
            JOIN perennial.period_told p ON p.stream_id = w.stream_id
                -- Apple's clock and ours may differ by a little.
                AND p.purchased_at <= w.said_at + interval '5 minutes'
            WHERE w.price_milliunits IS NOT NULL AND NOT p.is_family_shared
              AND p.known_from <= known_at AND COALESCE(p.known_until > known_at, true)
              AND w.said_id IN (
                  SELECT x.said_id FROM perennial.price_said x
                  WHERE x.price_milliunits IS NOT NULL AND x.said_at <= known_at
                    AND (streams IS NULL OR (x.kind = 'subscription' AND x.stream_id = ANY (streams))))
            UNION ALL
            SELECT w.said_id, w.said_at, w.price_milliunits, w.currency, true, p.stream_id, p.stream_id, p.purchased_at
            FROM perennial.purchase_price_said w
            JOIN perennial.purchase_history p ON p.stream_id = w.stream_id
                AND p.purchased_at <= w.said_at + interval '5 minutes'
            WHERE w.price_milliunits IS NOT NULL
              AND p.known_from <= known_at AND COALESCE(p.known_until > known_at, true)
              AND w.said_id IN (
                  SELECT x.said_id FROM perennial.price_said x
                  WHERE x.price_milliunits IS NOT NULL AND x.said_at <= known_at
                    AND (streams IS NULL OR (x.kind = 'subscription' AND x.stream_id = ANY (streams))))) h
        ORDER BY h.said_id, h.purchased_at DESC, h.is_purchase DESC, h.charge_id) newest
    ORDER BY newest.is_purchase, newest.charge_id, newest.said_at DESC, newest.said_id DESC
$$;

-- Where the price of a charge comes from: said at intake, the storefront's, the default one's. Trials and what the family
-- shares are no charges.
CREATE FUNCTION perennial.price_basis(
    offer text, is_family_shared boolean, said bigint, storefront bigint, "default" bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN is_family_shared OR offer IS NOT DISTINCT FROM 'trial' THEN NULL
                WHEN said IS NOT NULL THEN 'said'
                WHEN offer IS NOT NULL THEN 'unknown'
                WHEN storefront IS NOT NULL THEN 'storefront'
                WHEN "default" IS NOT NULL THEN 'default'
                ELSE 'unknown' END
$$;

-- Where a subscription's customer buys: what is said of the storefront goes for a purchase of the day before, and until
-- something else is said.
CREATE FUNCTION perennial.storefronts_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (stream_id bigint, storefront text, valid_from timestamptz, valid_until timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT w.stream_id, w.storefront,
           CASE WHEN row_number() OVER stream = 1 THEN '-infinity' ELSE w.said_at - interval '1 day' END,
           COALESCE(lead(w.said_at) OVER stream - interval '1 day', 'infinity')
    FROM perennial.period_price_said w
    WHERE w.storefront IS NOT NULL AND w.said_at <= known_at AND (streams IS NULL OR w.stream_id = ANY (streams))
    WINDOW stream AS (PARTITION BY w.stream_id ORDER BY w.said_at, w.said_id)
$$;

-- The subscriptions' half of charges_of.
CREATE FUNCTION perennial.period_charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.bundle_id, c.environment, c.stream_id, c.charge_id, c.original_transaction_id, c.product_id, c.quantity,
           c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared, place.storefront,
           c.quantity * CASE basis.word WHEN 'said' THEN said.price_milliunits WHEN 'storefront' THEN there.price_milliunits
                                        WHEN 'default' THEN anywhere.price_milliunits END,
           CASE basis.word WHEN 'said' THEN said.currency WHEN 'storefront' THEN there.currency
                           WHEN 'default' THEN anywhere.currency END,
           basis.word, c.first_known_at, c.cancellation_known_at
    FROM perennial.period_history c
    LEFT JOIN perennial.price_speaks_of(known_at, streams) said ON NOT said.is_purchase AND said.charge_id = c.charge_id
    LEFT JOIN perennial.storefronts_of(known_at, streams) place
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
        SELECT perennial.price_basis(c.offer, c.is_family_shared, said.price_milliunits, there.price_milliunits,
                                     anywhere.price_milliunits) AS word) basis
    WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
      AND (streams IS NULL OR c.stream_id = ANY (streams))
$$;

-- As before, of its two halves; streams are subscriptions, so that with them there are no one-time purchases.
CREATE OR REPLACE FUNCTION perennial.charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.bundle_id, c.environment, 'subscription', c.stream_id, c.charge_id, c.original_transaction_id, c.product_id,
           c.quantity, c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared,
           c.storefront, c.amount_milliunits, c.currency, c.price_basis, c.first_known_at, c.cancellation_known_at
    FROM perennial.period_charges_of(known_at, streams) c
    UNION ALL
    SELECT c.bundle_id, c.environment, 'purchase', c.stream_id, c.stream_id, c.original_transaction_id, c.product_id,
           c.quantity, c.purchased_at, NULL, c.revoked_at, false, NULL, false, place.storefront,
           c.quantity * COALESCE(said.price_milliunits, there.price_milliunits, anywhere.price_milliunits),
           CASE WHEN said.price_milliunits IS NOT NULL THEN said.currency
                WHEN there.price_milliunits IS NOT NULL THEN there.currency ELSE anywhere.currency END,
           CASE WHEN said.price_milliunits IS NOT NULL THEN 'said' WHEN there.price_milliunits IS NOT NULL THEN 'storefront'
                WHEN anywhere.price_milliunits IS NOT NULL THEN 'default' ELSE 'unknown' END,
           c.first_known_at, c.revocation_known_at
    FROM perennial.purchase_history c
    LEFT JOIN perennial.price_speaks_of(known_at, NULL) said ON said.is_purchase AND said.charge_id = c.stream_id
    LEFT JOIN (
        SELECT w.stream_id, w.storefront,
               CASE WHEN row_number() OVER stream = 1 THEN '-infinity' ELSE w.said_at - interval '1 day' END AS valid_from,
               COALESCE(lead(w.said_at) OVER stream - interval '1 day', 'infinity') AS valid_until
        FROM perennial.purchase_price_said w WHERE w.storefront IS NOT NULL AND w.said_at <= known_at
        WINDOW stream AS (PARTITION BY w.stream_id ORDER BY w.said_at, w.said_id)
    ) place ON place.stream_id = c.stream_id AND place.valid_from <= c.purchased_at AND c.purchased_at < place.valid_until
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = place.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
    WHERE streams IS NULL AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
$$;

-- Charges of one product and subscription that follow each other and cost the same are one run: between two of them nothing
-- begins that costs otherwise, which is a charge with an offer, a price of its own, another quantity, or none at all, nor
-- does the catalog's price or the storefront change. Counting those instants before each charge finds the runs without
-- sorting all charges.
CREATE FUNCTION perennial.charge_runs_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    stream_id bigint, charge_id bigint, product_id text, quantity int, offer text, is_family_shared boolean,
    begins_at timestamptz, first_expires_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.stream_id, min(c.charge_id), c.product_id, c.quantity, c.offer, c.is_family_shared, min(c.purchased_at),
           min(c.expires_at)
    FROM (
        SELECT p.*, catalog.has_period IS TRUE AS has_period, p.purchased_at = ANY (own.said) IS TRUE AS is_said,
               COALESCE(width_bucket(p.purchased_at, catalog.instants), 0)
                   + COALESCE(width_bucket(p.purchased_at, own.instants), 0) AS run
        FROM perennial.period_told p
        LEFT JOIN (
            SELECT COALESCE(h.product_id, d.product_id) AS product_id,
                   COALESCE(bool_and(d.period IS NOT NULL), false) AS has_period,
                   array_agg(DISTINCT h.valid_from ORDER BY h.valid_from) FILTER (WHERE h.valid_from IS NOT NULL) AS instants
            FROM perennial.price_history h FULL JOIN perennial.product_now d USING (bundle_id, product_id)
            GROUP BY 1
        ) catalog ON catalog.product_id = p.product_id
        LEFT JOIN (
            SELECT odd.stream_id, array_agg(DISTINCT odd.at ORDER BY odd.at) AS instants,
                   array_agg(odd.at) FILTER (WHERE odd.is_said) AS said
            FROM (
                SELECT o.stream_id, o.purchased_at AS at, false AS is_said FROM perennial.period_told o
                WHERE (o.offer IS NOT NULL OR o.is_family_shared OR o.quantity <> 1)
                  AND (streams IS NULL OR o.stream_id = ANY (streams))
                UNION ALL
                SELECT said.stream_id, said.purchased_at, true FROM perennial.price_speaks_of(known_at, streams) said
                WHERE NOT said.is_purchase
                UNION ALL
                SELECT place.stream_id, place.valid_from, false FROM perennial.storefronts_of(known_at, streams) place
                WHERE place.valid_from > '-infinity') odd
            GROUP BY odd.stream_id
        ) own ON own.stream_id = p.stream_id
        WHERE p.known_from <= known_at AND COALESCE(p.known_until > known_at, true)
          AND COALESCE(p.cancelled_at > p.purchased_at, true) AND (streams IS NULL OR p.stream_id = ANY (streams))) c
    GROUP BY c.stream_id, c.product_id, c.run, c.quantity, c.offer, c.is_family_shared,
             CASE WHEN c.offer IS NOT NULL OR c.is_said OR NOT c.has_period THEN c.charge_id END
$$;

-- Stretches in which a subscription was paying, as before, but what goes on at the same price is one stretch: charge_id is
-- a charge of it.
CREATE OR REPLACE FUNCTION perennial.paying_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT t.bundle_id, t.environment, t.subscription_id, p.charge_id, t.original_transaction_id, t.product_id,
           GREATEST(t.valid_from, p.begins_at), LEAST(t.access_until, p.until),
           CASE WHEN t.access_until < t.valid_until THEN t.state ELSE t.next_state END,
           CASE WHEN t.access_until < t.valid_until THEN t.reason ELSE t.next_reason END,
           p.offer, p.monthly, CASE WHEN p.monthly IS NOT NULL THEN p.currency END, p.price_basis
    FROM (
        SELECT h.*, lead(h.state) OVER stream AS next_state, lead(h.reason) OVER stream AS next_reason
        FROM perennial.timeline h
        WHERE h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
          AND (streams IS NULL OR h.subscription_id = ANY (streams))
        WINDOW stream AS (PARTITION BY h.subscription_id ORDER BY h.valid_from)
    ) t
    JOIN (
        SELECT r.stream_id, r.charge_id, r.product_id, r.offer, r.begins_at,
               lead(r.begins_at) OVER (
                   PARTITION BY r.stream_id, r.product_id ORDER BY r.begins_at, r.first_expires_at, r.charge_id) AS until,
               round(price.amount / NULLIF(perennial.months(
                   CASE WHEN r.offer IS NULL THEN d.period END, r.begins_at, r.first_expires_at), 0))::bigint AS monthly,
               price.currency, price.basis AS price_basis
        FROM perennial.charge_runs_of(known_at, streams) r
        JOIN perennial.subscription_key n USING (stream_id)
        LEFT JOIN perennial.product_now d ON d.bundle_id = n.bundle_id AND d.product_id = r.product_id
        LEFT JOIN perennial.price_speaks_of(known_at, streams) said ON NOT said.is_purchase AND said.charge_id = r.charge_id
        LEFT JOIN perennial.storefronts_of(known_at, streams) place
            ON place.stream_id = r.stream_id AND place.valid_from <= r.begins_at AND r.begins_at < place.valid_until
        LEFT JOIN perennial.price_history there
            ON there.bundle_id = n.bundle_id AND there.product_id = r.product_id AND there.storefront = place.storefront
            AND there.valid_from <= r.begins_at AND r.begins_at < there.valid_until
            AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
        LEFT JOIN perennial.price_history anywhere
            ON anywhere.bundle_id = n.bundle_id AND anywhere.product_id = r.product_id AND anywhere.storefront = ''
            AND anywhere.valid_from <= r.begins_at AND r.begins_at < anywhere.valid_until
            AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
        CROSS JOIN LATERAL (
            SELECT p.basis,
                   r.quantity * CASE p.basis WHEN 'said' THEN said.price_milliunits
                                             WHEN 'storefront' THEN there.price_milliunits
                                             WHEN 'default' THEN anywhere.price_milliunits END AS amount,
                   CASE p.basis WHEN 'said' THEN said.currency WHEN 'storefront' THEN there.currency
                                WHEN 'default' THEN anywhere.currency END AS currency
            FROM (SELECT perennial.price_basis(
                r.offer, r.is_family_shared, said.price_milliunits, there.price_milliunits,
                anywhere.price_milliunits) AS basis) p) price
    ) p ON p.stream_id = t.subscription_id AND p.product_id = t.product_id
        AND p.begins_at < t.access_until AND COALESCE(p.until > t.valid_from, true)
    WHERE t.access_until IS NOT NULL AND p.price_basis IS NOT NULL AND COALESCE(p.until > p.begins_at, true)
$$;

-- As before, in one sort: paid service is added up over the whole subscription, and what came before the last gap of more
-- than 60 days is taken away.
CREATE FUNCTION perennial.revenue_of(known_at timestamptz, streams bigint[])
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
                   PARTITION BY served.stream_id, served.kind ORDER BY served.purchased_at, served.charge_id), '0') AS service_before
        FROM (
            SELECT r.*,
                   sum(CASE WHEN r.offer IS NOT DISTINCT FROM 'trial' OR r.is_family_shared
                              OR (r.cancelled_at IS NOT NULL AND NOT r.is_upgraded) THEN interval '0'
                            ELSE GREATEST(LEAST(r.expires_at, CASE WHEN r.is_upgraded THEN r.replaced_at END)
                                          - r.purchased_at, interval '0') END) OVER before AS service,
                   r.purchased_at > max(LEAST(r.expires_at, r.cancelled_at)) OVER before + interval '60 days' AS begins_anew
            FROM (
                SELECT k.*,
                       -- A sandbox row may be replaced without saying when: when the next period began, or at once if it
                       -- was charged ahead of a period that another one had already begun to cover.
                       CASE WHEN k.is_upgraded THEN COALESCE(k.cancelled_at, CASE
                           WHEN lag(k.expires_at) OVER stream > k.purchased_at THEN k.purchased_at
                           ELSE lead(k.purchased_at) OVER stream END) END AS replaced_at
                FROM perennial.charges_of(known_at, streams) k
                WINDOW stream AS (PARTITION BY k.stream_id, k.kind ORDER BY k.purchased_at, k.charge_id)) r
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
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, c.amount_milliunits AS amount, c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at, -c.amount_milliunits, c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND NOT c.is_upgraded
        UNION ALL
        -- When it was replaced is not known if another subscription did it without Apple saying so: then nor is the amount.
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at),
               CASE WHEN c.replaced_at IS NOT NULL THEN
                   -round(c.amount_milliunits * LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                       / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0)))::bigint END,
               COALESCE(c.cancellation_known_at, c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, true)) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;

CREATE OR REPLACE FUNCTION perennial.revenue_as_known(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.revenue_of(known_at, NULL)
$$;

-- How many monthly anniversaries of an instant had come before another one, each with a day for renewals that come late and
-- for the hour of daylight saving.
CREATE FUNCTION perennial.anniversaries(began_at timestamptz, before timestamptz) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT GREATEST(0, m.months - (m.began + m.months * interval '1 month' >= m.before)::int)
    FROM (
        SELECT d.*, (12 * (extract(year FROM d.before) - extract(year FROM d.began))
                     + extract(month FROM d.before) - extract(month FROM d.began))::int AS months
        FROM (SELECT anniversaries.began_at AT TIME ZONE 'UTC' AS began,
                     anniversaries.before AT TIME ZONE 'UTC' - interval '1 day' AS before) d) m
$$;

-- As before, of subscriptions that had a trial alone.
CREATE OR REPLACE FUNCTION perennial.trials_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           o.outcome,
           CASE o.outcome WHEN 'converted' THEN r.paid_at
                          WHEN 'lost' THEN CASE WHEN r.paid_at IS NULL THEN t.valid_from ELSE r.ends_at END END
    FROM (
        SELECT p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, min(p.product_id) AS product_id,
               min(p.purchased_at) AS started_at, max(LEAST(p.expires_at, p.cancelled_at)) AS ends_at,
               min(p.paid_at) AS paid_at
        FROM (
            SELECT b.*, count(*) FILTER (WHERE b.begins) OVER (
                       PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id) AS run,
                   min(b.purchased_at) FILTER (WHERE b.offer IS DISTINCT FROM 'trial') OVER (
                       PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id
                       ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS paid_at
            FROM (
                SELECT c.*, lag(c.offer) OVER (
                           PARTITION BY c.stream_id ORDER BY c.purchased_at, c.charge_id)
                           IS DISTINCT FROM c.offer AS begins
                FROM perennial.period_history c
                WHERE NOT c.is_family_shared AND c.purchased_at <= LEAST(known_at, now())
                  AND COALESCE(c.cancelled_at > c.purchased_at, true)
                  AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
                  AND (streams IS NULL OR c.stream_id = ANY (streams))
                  AND c.stream_id IN (
                      SELECT h.stream_id FROM perennial.period_history h
                      WHERE h.offer = 'trial' AND (streams IS NULL OR h.stream_id = ANY (streams)))) b) p
        WHERE p.offer = 'trial'
        GROUP BY p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, p.run) r
    LEFT JOIN perennial.timeline t
        ON t.subscription_id = r.stream_id
        AND t.valid_from <= LEAST(known_at, now()) AND LEAST(known_at, now()) < t.valid_until
        AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.paid_at <= r.ends_at + interval '65 days' THEN 'converted'
                    WHEN r.paid_at IS NOT NULL THEN 'lost'
                    WHEN r.ends_at > LEAST(known_at, now()) THEN 'running'
                    WHEN t.state IN ('expired', 'revoked')
                        AND COALESCE(t.access_until <= LEAST(known_at, now()), true) THEN 'lost'
                    ELSE 'pending' END AS outcome) o
$$;

-- What the reports of subscriptions with access, of recurring revenue and of revenue rest on, as known at two instants: with
-- sign -1 what was known before, with sign 1 what was known after. Only of what something else was said of in between; the
-- rest would cancel out. PL/pgSQL, so that the plan knows which subscriptions those are.
CREATE FUNCTION perennial.restated_as_known(known_before timestamptz, known_after timestamptz, time_zone text)
RETURNS TABLE (
    figure text, sign int, bundle_id text, environment text, stream_kind text, stream_id bigint,
    original_transaction_id text, product_id text, currency text, first_day date, end_day date, amount bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    knowing record;
    streams bigint[] := ARRAY(
        WITH told AS (
            SELECT 'subscription' AS kind, t.subscription_id AS stream_id FROM perennial.timeline t
            WHERE (t.known_from > known_before AND t.known_from <= known_after)
               OR (t.known_until > known_before AND t.known_until <= known_after)
            UNION ALL
            SELECT c.kind, c.stream_id FROM perennial.charge_history c
            WHERE (c.known_from > known_before AND c.known_from <= known_after)
               OR (c.known_until > known_before AND c.known_until <= known_after)
            UNION ALL
            SELECT c.kind, c.stream_id
            FROM perennial.price_history p
            JOIN perennial.charge_history c ON c.bundle_id = p.bundle_id AND c.product_id = p.product_id
                AND c.purchased_at >= p.valid_from AND c.purchased_at < p.valid_until
            WHERE (p.known_from > known_before AND p.known_from <= known_after)
               OR (p.known_until > known_before AND p.known_until <= known_after)
        )
        SELECT DISTINCT s.stream_id
        FROM (
            SELECT t.kind, t.stream_id FROM told t
            UNION ALL
            -- A price that was said may now speak of something else that is in the same receipt.
            SELECT other.kind, other.stream_id
            FROM perennial.price_said w JOIN perennial.price_said other USING (said_id)
            WHERE (w.said_at > known_before AND w.said_at <= known_after)
               OR (w.price_milliunits IS NOT NULL AND (w.kind, w.stream_id) IN (SELECT t.kind, t.stream_id FROM told t))) s
        WHERE s.kind = 'subscription');
BEGIN
    FOR knowing IN SELECT * FROM (VALUES (known_before, -1), (known_after, 1)) AS k (at, sign) LOOP
        RETURN QUERY
        SELECT 'active_subscriptions', knowing.sign, t.bundle_id, t.environment, 'subscription', t.subscription_id,
               t.original_transaction_id, t.product_id, NULL::text, (t.valid_from AT TIME ZONE time_zone)::date,
               (t.access_until AT TIME ZONE time_zone)::date, NULL::bigint
        FROM perennial.timeline t
        WHERE t.subscription_id = ANY (streams) AND t.access_until IS NOT NULL
          AND t.known_from <= knowing.at AND COALESCE(t.known_until > knowing.at, true);
        RETURN QUERY
        SELECT 'mrr', knowing.sign, d.bundle_id, d.environment, 'subscription', d.stream_id, d.original_transaction_id,
               d.product_id, d.currency, d.first_day, d.end_day, d.monthly_milliunits
        FROM perennial.paying_days_of(knowing.at, time_zone, streams) d;
        RETURN QUERY
        SELECT 'revenue', knowing.sign, r.bundle_id, r.environment, r.charge_kind, r.stream_id, r.original_transaction_id,
               r.product_id, r.currency, (r.occurred_at AT TIME ZONE time_zone)::date,
               (r.occurred_at AT TIME ZONE time_zone)::date + 1, r.amount_milliunits
        FROM perennial.revenue_of(knowing.at, streams) r
        UNION ALL
        SELECT 'revenue', knowing.sign, r.bundle_id, r.environment, r.charge_kind, r.stream_id, r.original_transaction_id,
               r.product_id, r.currency, (r.occurred_at AT TIME ZONE time_zone)::date,
               (r.occurred_at AT TIME ZONE time_zone)::date + 1, r.amount_milliunits
        FROM perennial.revenue_as_known(knowing.at) r
        WHERE r.charge_kind = 'purchase';
    END LOOP;
END
$$;

-- The movements of a day, counted and added up. What reports tell by week, month or year they add up from these.
CREATE FUNCTION perennial.mrr_movement_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, kind text, currency text, price_basis text, ended_state text,
    ended_reason text, movements bigint, monthly numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT m.day, m.bundle_id, m.environment, m.kind, m.currency, m.price_basis, m.ended_state, m.ended_reason, count(*),
           sum(m.monthly_milliunits)
    FROM perennial.mrr_movement_as_known(known_at, time_zone) m
    GROUP BY m.day, m.bundle_id, m.environment, m.kind, m.currency, m.price_basis, m.ended_state, m.ended_reason
$$;
CREATE FUNCTION perennial.revenue_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, charge_kind text, kind text, product_id text, currency text,
    price_basis text, commission_percent int, commission_reason text, movements bigint, amount_milliunits numeric,
    proceeds_milliunits numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (r.occurred_at AT TIME ZONE time_zone)::date, r.bundle_id, r.environment, r.charge_kind, r.kind, r.product_id,
           r.currency, r.price_basis, r.commission_percent, r.commission_reason, count(*), sum(r.amount_milliunits),
           sum(r.proceeds_milliunits)
    FROM perennial.revenue_as_known(known_at) r
    GROUP BY 1, r.bundle_id, r.environment, r.charge_kind, r.kind, r.product_id, r.currency, r.price_basis,
             r.commission_percent, r.commission_reason
$$;

-- Parallel workers may do all of it; without the word none may.
ALTER FUNCTION perennial.charges_as_known(timestamptz) PARALLEL SAFE;
ALTER FUNCTION perennial.months(text, timestamptz, timestamptz) PARALLEL SAFE;
ALTER FUNCTION perennial.paying_as_known(timestamptz) PARALLEL SAFE;
ALTER FUNCTION perennial.paying_days_of(timestamptz, text, bigint[]) PARALLEL SAFE;
ALTER FUNCTION perennial.paying_days_as_known(timestamptz, text) PARALLEL SAFE;
ALTER FUNCTION perennial.mrr_movement_of(timestamptz, text, bigint[]) PARALLEL SAFE;
ALTER FUNCTION perennial.mrr_movement_as_known(timestamptz, text) PARALLEL SAFE;
ALTER FUNCTION perennial.trials_as_known(timestamptz) PARALLEL SAFE;
ALTER FUNCTION perennial.shares_of(bigint[]) PARALLEL SAFE;
ALTER FUNCTION ledger.is_held(tstzrange, timestamptz, timestamptz) PARALLEL SAFE;
