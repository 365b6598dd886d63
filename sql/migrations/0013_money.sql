-- Money and the past: dated prices per storefront, prices said at intake, what was known of every charge and when.

-- What a product costs: valid is when it applies, known is when we said so. The storefront '' is the default one.
CREATE TABLE ledger.product_price (
    app_id            int NOT NULL REFERENCES ledger.app,
    product_id        text NOT NULL,
    storefront        text NOT NULL,
    valid             tstzrange NOT NULL,
    known             tstzrange NOT NULL,
    price_milliunits  bigint NOT NULL,
    currency          text NOT NULL,
    CONSTRAINT product_price_is_not_negative CHECK (price_milliunits >= 0),
    CONSTRAINT product_price_currency_is_iso_4217 CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT product_price_is_valid_sometime CHECK (NOT isempty(valid)),
    CONSTRAINT product_price_says_one_thing EXCLUDE USING gist
        (app_id WITH =, product_id WITH =, storefront WITH =, valid WITH &&, known WITH &&)
);
-- Of when older catalogs were applied nothing is known, so their prices count from ever.
INSERT INTO ledger.product_price (app_id, product_id, storefront, valid, known, price_milliunits, currency)
SELECT app_id, product_id, '', tstzrange(NULL, NULL), tstzrange(NULL, NULL), price_milliunits, currency
FROM ledger.product WHERE price_milliunits IS NOT NULL;

-- Says what a product costs in a stretch of time (price null: nothing is said), and keeps what was said of it before.
CREATE FUNCTION ledger.say_price(
    app_id int, product_id text, storefront text, valid tstzrange, price_milliunits bigint, currency text,
    at timestamptz DEFAULT clock_timestamp())
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    told ledger.product_price;
BEGIN
    FOR told IN
        UPDATE ledger.product_price p SET known = tstzrange(lower(p.known), say_price.at)
        WHERE p.app_id = say_price.app_id AND p.product_id = say_price.product_id AND p.storefront = say_price.storefront
          AND upper_inf(p.known) AND p.valid && say_price.valid
        RETURNING p.*
    LOOP
        INSERT INTO ledger.product_price
        SELECT told.app_id, told.product_id, told.storefront, rest.valid, tstzrange(say_price.at, NULL),
               told.price_milliunits, told.currency
        FROM (VALUES
            (CASE WHEN lower_inf(say_price.valid) THEN 'empty' ELSE told.valid * tstzrange(NULL, lower(say_price.valid)) END),
            (CASE WHEN upper_inf(say_price.valid) THEN 'empty' ELSE told.valid * tstzrange(upper(say_price.valid), NULL) END)
        ) rest (valid)
        WHERE NOT isempty(rest.valid);
    END LOOP;
    IF say_price.price_milliunits IS NOT NULL THEN
        INSERT INTO ledger.product_price VALUES
            (say_price.app_id, say_price.product_id, say_price.storefront, say_price.valid, tstzrange(say_price.at, NULL),
             say_price.price_milliunits, say_price.currency);
    END IF;
END $$;

-- When Apple keeps 15 % of everything because the app's owner was in the Small Business Program.
CREATE TABLE ledger.small_business (
    app_id  int NOT NULL REFERENCES ledger.app,
    valid   tstzrange NOT NULL,
    known   tstzrange NOT NULL DEFAULT tstzrange(now(), NULL),
    CONSTRAINT small_business_says_one_thing EXCLUDE USING gist (app_id WITH =, valid WITH &&, known WITH &&)
);

-- Every storefront and price an upload said, with the instant. An upload keeps only the newest.
CREATE TABLE ledger.said_price (
    said_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    receipt_id        bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    customer_id       bigint NOT NULL REFERENCES ledger.customer ON DELETE CASCADE,
    said_at           timestamptz NOT NULL,
    storefront        text,
    price_milliunits  bigint,
    currency          text,
    CONSTRAINT said_price_says_something CHECK (num_nonnulls(storefront, price_milliunits) > 0),
    CONSTRAINT said_price_has_currency CHECK ((price_milliunits IS NULL) = (currency IS NULL))
);
CREATE INDEX said_price_of_receipt ON ledger.said_price (receipt_id);

-- A price without its currency says nothing.
CREATE FUNCTION ledger.keep_said_price() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.said_price (receipt_id, customer_id, said_at, storefront, price_milliunits, currency)
    SELECT NEW.receipt_id, NEW.customer_id, NEW.uploaded_at, NEW.storefront,
           CASE WHEN NEW.currency IS NOT NULL THEN NEW.price_milliunits END,
           CASE WHEN NEW.price_milliunits IS NOT NULL THEN NEW.currency END
    WHERE num_nonnulls(NEW.storefront, NEW.price_milliunits + length(NEW.currency)) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER upload_says_price AFTER INSERT ON ledger.upload FOR EACH ROW
    WHEN (num_nonnulls(NEW.storefront, NEW.price_milliunits) > 0) EXECUTE FUNCTION ledger.keep_said_price();
CREATE TRIGGER upload_says_another_price AFTER UPDATE ON ledger.upload FOR EACH ROW
    WHEN ((NEW.storefront, NEW.price_milliunits, NEW.currency)
          IS DISTINCT FROM (OLD.storefront, OLD.price_milliunits, OLD.currency)) EXECUTE FUNCTION ledger.keep_said_price();
INSERT INTO ledger.said_price (receipt_id, customer_id, said_at, storefront, price_milliunits, currency)
SELECT receipt_id, customer_id, uploaded_at, storefront,
       CASE WHEN currency IS NOT NULL THEN price_milliunits END, CASE WHEN price_milliunits IS NOT NULL THEN currency END
FROM ledger.upload WHERE storefront IS NOT NULL OR (price_milliunits IS NOT NULL AND currency IS NOT NULL);

-- What was known of a period or purchase before something that figures depend on changed. The newest is in the row itself,
-- since facts_recorded_at, or since it was first recorded where that is null.
ALTER TABLE ledger.period ADD COLUMN facts_recorded_at timestamptz;
CREATE TABLE ledger.period_past (
    period_id                 bigint NOT NULL,
    subscription_id           bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    known                     tstzrange NOT NULL,
    product_id                text NOT NULL,
    quantity                  int NOT NULL,
    purchased_at              timestamptz NOT NULL,
    expires_at                timestamptz NOT NULL,
    cancelled_at              timestamptz,
    is_upgraded               boolean NOT NULL,
    is_trial                  boolean NOT NULL,
    is_intro                  boolean NOT NULL,
    promotional_offer_id      text,
    offer_code_ref_name       text,
    ownership                 text,
    recorded_at               timestamptz NOT NULL,
    cancellation_recorded_at  timestamptz
);
CREATE INDEX period_past_of_subscription ON ledger.period_past (subscription_id);
-- A cancellation that came later than its period was not known before.
INSERT INTO ledger.period_past
SELECT period_id, subscription_id, tstzrange(recorded_at, cancellation_recorded_at), product_id, quantity, purchased_at,
       expires_at, NULL, false, is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, recorded_at, NULL
FROM ledger.period WHERE cancellation_recorded_at > recorded_at;
UPDATE ledger.period SET facts_recorded_at = cancellation_recorded_at WHERE cancellation_recorded_at > recorded_at;

ALTER TABLE ledger.purchase ADD COLUMN facts_recorded_at timestamptz;
CREATE TABLE ledger.purchase_past (
    purchase_id             bigint NOT NULL REFERENCES ledger.purchase ON DELETE CASCADE,
    known                   tstzrange NOT NULL,
    quantity                int NOT NULL,
    purchased_at            timestamptz NOT NULL,
    revoked_at              timestamptz,
    revocation_recorded_at  timestamptz
);
CREATE INDEX purchase_past_of_purchase ON ledger.purchase_past (purchase_id);
INSERT INTO ledger.purchase_past
SELECT purchase_id, tstzrange(first_recorded_at, revocation_recorded_at), quantity, purchased_at, NULL, NULL
FROM ledger.purchase WHERE revocation_recorded_at > first_recorded_at;
UPDATE ledger.purchase SET facts_recorded_at = revocation_recorded_at WHERE revocation_recorded_at > first_recorded_at;

-- The views tell environments as text: without this the planner takes each for rare.
CREATE STATISTICS ledger.subscription_environment ON (environment::text) FROM ledger.subscription;
CREATE STATISTICS ledger.purchase_environment ON (environment::text) FROM ledger.purchase;

-- The catalog as it applies now.
CREATE VIEW perennial.product_now AS
SELECT a.bundle_id, p.product_id, p.group_id AS subscription_group_identifier, p.level, p.period, p.price_milliunits,
       p.currency
FROM ledger.product p JOIN ledger.app a USING (app_id);

-- Prices with when they apply and when we said so; the storefront '' is the default one.
CREATE VIEW perennial.price_history AS
SELECT a.bundle_id, p.product_id, p.storefront, p.price_milliunits, p.currency,
       COALESCE(lower(p.valid), '-infinity') AS valid_from, COALESCE(upper(p.valid), 'infinity') AS valid_until,
       COALESCE(lower(p.known), '-infinity') AS known_from, upper(p.known) AS known_until
FROM ledger.product_price p JOIN ledger.app a USING (app_id) WHERE NOT isempty(p.known);

CREATE VIEW perennial.small_business_history AS
SELECT a.bundle_id, COALESCE(lower(b.valid), '-infinity') AS valid_from, COALESCE(upper(b.valid), 'infinity') AS valid_until,
       COALESCE(lower(b.known), '-infinity') AS known_from, upper(b.known) AS known_until
FROM ledger.small_business b JOIN ledger.app a USING (app_id) WHERE NOT isempty(b.valid) AND NOT isempty(b.known);

-- Every timeline with what was said of it and when: the state holds from valid_from until valid_until, and access goes on
-- until access_until.
CREATE VIEW perennial.timeline AS
SELECT a.bundle_id, s.environment::text AS environment, s.subscription_id, s.original_transaction_id, t.product_id,
       t.state::text AS state, t.reason::text AS reason, t.entitled, t.flags,
       COALESCE(lower(t.valid), '-infinity') AS valid_from, COALESCE(upper(t.valid), 'infinity') AS valid_until,
       CASE WHEN t.entitled THEN COALESCE(upper(t.valid), 'infinity')
            WHEN t.held_until IS NOT NULL THEN LEAST(t.held_until, COALESCE(upper(t.valid), 'infinity'))
            END AS access_until,
       lower(t.known) AS known_from, upper(t.known) AS known_until
FROM ledger.subscription_span t
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id);
COMMENT ON COLUMN perennial.timeline.access_until IS
    'Null: no access. Later than valid_from without being entitled: held, because Apple was not asked since';

-- Every period and one-time purchase with what was said of it and when; a charge is known by (kind, charge_id), what it
-- belongs to by (kind, stream_id).
CREATE VIEW perennial.charge_history AS
SELECT a.bundle_id, s.environment::text AS environment, 'subscription' AS kind, p.subscription_id AS stream_id,
       p.period_id AS charge_id, s.original_transaction_id, p.product_id, p.quantity, p.purchased_at, p.expires_at,
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
    FROM ledger.period_past WHERE NOT isempty(known)) p
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
UNION ALL
SELECT a.bundle_id, p.environment::text, 'purchase', p.purchase_id, p.purchase_id, p.original_transaction_id, p.product_id,
       h.quantity, h.purchased_at, NULL, h.revoked_at, false, NULL, false, p.first_recorded_at, h.revocation_recorded_at,
       h.known_from, h.known_until
FROM (
    SELECT purchase_id, quantity, purchased_at, revoked_at, revocation_recorded_at,
           COALESCE(facts_recorded_at, first_recorded_at) AS known_from, NULL::timestamptz AS known_until
    FROM ledger.purchase WHERE version > 0
    UNION ALL
    SELECT purchase_id, quantity, purchased_at, revoked_at, revocation_recorded_at, lower(known), upper(known)
    FROM ledger.purchase_past WHERE NOT isempty(known)) h
JOIN ledger.purchase p USING (purchase_id)
JOIN ledger.app a USING (app_id);

-- What uploads said of storefront and price, with everything it may speak of: what the receipt holds.
CREATE VIEW perennial.price_said AS
SELECT w.said_id, w.said_at, 'subscription' AS kind, l.subscription_id AS stream_id, w.storefront, w.price_milliunits,
       w.currency
FROM ledger.said_price w JOIN ledger.receipt_subscription l USING (receipt_id)
UNION ALL
SELECT w.said_id, w.said_at, 'purchase', l.purchase_id, w.storefront, w.price_milliunits, w.currency
FROM ledger.said_price w JOIN ledger.receipt_purchase l USING (receipt_id);

-- Every period and one-time purchase as known at an instant ('infinity': now), with its price and where that comes from:
-- 'said' at intake or import, which speaks of the newest thing bought when it was said; else the catalog's of that
-- 'storefront' at that date; else its 'default' storefront's; else 'unknown'. The catalog does not price offers. Trials and
-- what the family shares are no charges and have neither price nor basis.
-- Not a definer of security and one SELECT, so that the planner looks into it; it reads views that everybody may.
CREATE FUNCTION perennial.charges_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id, c.product_id, c.quantity,
           c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared, place.storefront,
           c.quantity * CASE basis.word WHEN 'said' THEN said.price_milliunits WHEN 'storefront' THEN there.price_milliunits
                                        WHEN 'default' THEN anywhere.price_milliunits END,
           CASE basis.word WHEN 'said' THEN said.currency WHEN 'storefront' THEN there.currency
                           WHEN 'default' THEN anywhere.currency END,
           basis.word, c.first_known_at, c.cancellation_known_at
    FROM perennial.charge_history c
    LEFT JOIN (
        SELECT DISTINCT ON (newest.kind, newest.charge_id) newest.*
        FROM (
            SELECT DISTINCT ON (w.said_id) w.said_id, w.said_at, w.price_milliunits, w.currency, h.kind, h.charge_id
            FROM perennial.price_said w
            JOIN perennial.charge_history h ON h.kind = w.kind AND h.stream_id = w.stream_id
                -- Apple's clock and ours may differ by a little.
                AND h.purchased_at <= w.said_at + interval '5 minutes'
            WHERE w.price_milliunits IS NOT NULL AND w.said_at <= known_at AND NOT h.is_family_shared
              AND h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
            ORDER BY w.said_id, h.purchased_at DESC, h.kind, h.charge_id) newest
        ORDER BY newest.kind, newest.charge_id, newest.said_at DESC, newest.said_id DESC
    ) said ON said.kind = c.kind AND said.charge_id = c.charge_id
    LEFT JOIN (
        -- What is said of the storefront goes for a purchase of the day before, and until something else is said.
        SELECT w.kind, w.stream_id, w.storefront,
               CASE WHEN row_number() OVER stream = 1 THEN '-infinity' ELSE w.said_at - interval '1 day' END AS valid_from,
               COALESCE(lead(w.said_at) OVER stream - interval '1 day', 'infinity') AS valid_until
        FROM perennial.price_said w WHERE w.storefront IS NOT NULL AND w.said_at <= known_at
        WINDOW stream AS (PARTITION BY w.kind, w.stream_id ORDER BY w.said_at, w.said_id)
    ) place ON place.kind = c.kind AND place.stream_id = c.stream_id
        AND place.valid_from <= c.purchased_at AND c.purchased_at < place.valid_until
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = place.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.is_family_shared OR c.offer IS NOT DISTINCT FROM 'trial' THEN NULL
                    WHEN said.price_milliunits IS NOT NULL THEN 'said'
                    WHEN c.offer IS NOT NULL THEN 'unknown'
                    WHEN there.price_milliunits IS NOT NULL THEN 'storefront'
                    WHEN anywhere.price_milliunits IS NOT NULL THEN 'default'
                    ELSE 'unknown' END AS word) basis
    WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
$$;

-- Every charge, refund and prorated refund of a replaced period as known at an instant, signed, with Apple's commission:
-- 15 % in the Small Business Program, 15 % after a year of paid service, else 30 %. Paid service counts the paid periods of
-- the subscription before this one, refunded ones not and replaced ones until they were replaced; more than 60 days
-- without any begin anew. Proceeds are before taxes, which Apple does not tell.
CREATE FUNCTION perennial.revenue_as_known(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT moved.occurred_at, c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id,
           moved.kind, c.product_id, c.purchased_at, c.offer, c.storefront, moved.amount, c.currency, c.price_basis,
           cut.percent, cut.reason, round(moved.amount * (100 - cut.percent) / 100.0)::bigint, moved.recorded_at
    FROM (
        SELECT runs.*,
               sum(runs.served) OVER (
                   PARTITION BY runs.bundle_id, runs.environment, runs.kind, runs.stream_id, runs.run
                   ORDER BY runs.purchased_at, runs.charge_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS served_before
        FROM (
            SELECT gaps.*,
                   count(*) FILTER (WHERE gaps.purchased_at > gaps.served_until + interval '60 days') OVER (
                       PARTITION BY gaps.bundle_id, gaps.environment, gaps.kind, gaps.stream_id
                       ORDER BY gaps.purchased_at, gaps.charge_id) AS run,
                   CASE WHEN gaps.offer IS NOT DISTINCT FROM 'trial' OR gaps.is_family_shared
                          OR (gaps.cancelled_at IS NOT NULL AND NOT gaps.is_upgraded) THEN interval '0'
                        ELSE GREATEST(LEAST(gaps.expires_at, CASE WHEN gaps.is_upgraded THEN gaps.replaced_at END)
                                      - gaps.purchased_at, interval '0') END AS served
            FROM (
                SELECT k.*,
                       -- A sandbox row may be replaced without saying when: when the next period began, or at once if it
                       -- was charged ahead of a period that another one had already begun to cover.
                       CASE WHEN k.is_upgraded THEN COALESCE(k.cancelled_at, CASE
                           WHEN lag(k.expires_at) OVER stream > k.purchased_at THEN k.purchased_at
                           ELSE lead(k.purchased_at) OVER stream END) END AS replaced_at,
                       max(LEAST(k.expires_at, k.cancelled_at)) OVER (
                           PARTITION BY k.bundle_id, k.environment, k.kind, k.stream_id ORDER BY k.purchased_at, k.charge_id
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS served_until
                FROM perennial.charges_as_known(known_at) k
                WINDOW stream AS (
                    PARTITION BY k.bundle_id, k.environment, k.kind, k.stream_id ORDER BY k.purchased_at, k.charge_id)
            ) gaps
        ) runs
    ) c
    LEFT JOIN perennial.small_business_history small
        ON small.bundle_id = c.bundle_id AND small.valid_from <= c.purchased_at AND c.purchased_at < small.valid_until
        AND small.known_from <= known_at AND COALESCE(small.known_until > known_at, true)
    CROSS JOIN LATERAL (
        -- A year of Apple's calendar may be two hours short of 365 days on ours.
        SELECT CASE WHEN small.bundle_id IS NOT NULL OR c.served_before >= interval '364 days 22 hours' THEN 15
                    ELSE 30 END AS percent,
               CASE WHEN small.bundle_id IS NOT NULL THEN 'small_business'
                    WHEN c.served_before >= interval '364 days 22 hours' THEN 'after_one_year'
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

-- How many months a period lasts: the catalog's word for it, else (and for offers) its own length in whole months or weeks.
-- Sandbox periods without a catalog last no time (null). A month has 365.25 / 12 days.
CREATE FUNCTION perennial.months(period text, purchased_at timestamptz, expires_at timestamptz) RETURNS numeric
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE right(period, 1)
               WHEN 'Y' THEN 12.0 * substr(period, 2, length(period) - 2)::int
               WHEN 'M' THEN substr(period, 2, length(period) - 2)::numeric
               WHEN 'W' THEN 7.0 * substr(period, 2, length(period) - 2)::int * 12 / 365.25
               WHEN 'D' THEN substr(period, 2, length(period) - 2)::numeric * 12 / 365.25
               ELSE CASE WHEN days >= 25 THEN round(days * 12 / 365.25)
                         WHEN days >= 6 THEN round(days / 7) * 7 * 12 / 365.25
                         WHEN days >= 1 THEN round(days) * 12 / 365.25 END END
    FROM (SELECT extract(epoch FROM expires_at - purchased_at) / 86400 AS days) length
$$;

-- Stretches in which a subscription was paying, as known at an instant: it gave access, and the newest period that had
-- begun was a charge (no trial, not shared by the family). Grace and the wait for a renewal go on at the last price;
-- ended_state and ended_reason say what came after the stretch. A refunded period pays until its refund.
CREATE FUNCTION perennial.paying_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE AS $$
    SELECT t.bundle_id, t.environment, t.subscription_id, p.charge_id, t.original_transaction_id, t.product_id,
           GREATEST(t.valid_from, p.purchased_at), LEAST(t.access_until, p.next_purchased_at),
           CASE WHEN t.access_until < t.valid_until THEN t.state ELSE t.next_state END,
           CASE WHEN t.access_until < t.valid_until THEN t.reason ELSE t.next_reason END,
           p.offer, month.amount, CASE WHEN month.amount IS NOT NULL THEN p.currency END, p.price_basis
    FROM (
        SELECT h.*, lead(h.state) OVER stream AS next_state, lead(h.reason) OVER stream AS next_reason
        FROM perennial.timeline h
        WHERE h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
        WINDOW stream AS (PARTITION BY h.bundle_id, h.environment, h.subscription_id ORDER BY h.valid_from)
    ) t
    JOIN (
        SELECT c.*, lead(c.purchased_at) OVER (
                   PARTITION BY c.bundle_id, c.environment, c.stream_id, c.product_id
                   ORDER BY c.purchased_at, c.expires_at, c.charge_id) AS next_purchased_at
        FROM perennial.charges_as_known(known_at) c
        WHERE c.kind = 'subscription' AND COALESCE(c.cancelled_at > c.purchased_at, true)
    ) p ON p.stream_id = t.subscription_id AND p.product_id = t.product_id
        AND p.purchased_at < t.access_until AND COALESCE(p.next_purchased_at > t.valid_from, true)
    LEFT JOIN perennial.product_now d ON d.bundle_id = t.bundle_id AND d.product_id = t.product_id
    CROSS JOIN LATERAL (
        SELECT round(p.amount_milliunits / NULLIF(perennial.months(
            CASE WHEN p.offer IS NULL THEN d.period END, p.purchased_at, p.expires_at), 0))::bigint AS amount) month
    WHERE t.access_until IS NOT NULL AND p.price_basis IS NOT NULL
$$;

-- The same in whole days of a time zone: a subscription pays on a day if it does at the day's end, so from first_day on and
-- before end_day. With what came before and comes after, for comparing one day with the next.
CREATE FUNCTION perennial.paying_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, next_first_day date)
LANGUAGE sql STABLE AS $$
    SELECT d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, d.product_id, d.first_day, d.end_day,
           d.ended_state, d.ended_reason, d.offer, d.monthly_milliunits, d.currency, d.price_basis,
           lag(d.product_id) OVER stream, lag(d.end_day) OVER stream, lag(d.monthly_milliunits) OVER stream,
           lag(d.currency) OVER stream, lag(d.price_basis) OVER stream, lead(d.first_day) OVER stream
    FROM (
        SELECT p.*, (p.paying_from AT TIME ZONE time_zone)::date AS first_day,
               (p.paying_until AT TIME ZONE time_zone)::date AS end_day
        FROM perennial.paying_as_known(known_at) p) d
    WHERE d.first_day < d.end_day
    WINDOW stream AS (PARTITION BY d.bundle_id, d.environment, d.stream_id ORDER BY d.first_day)
$$;

-- How monthly recurring revenue moved from the end of one day to the end of the next, per subscription and currency:
-- 'new' (never paid before), 'reactivation', 'expansion', 'contraction', 'churn'. A subscription that goes on paying in
-- another currency, or at a price nobody knows, contracts in the one and expands in the other.
CREATE FUNCTION perennial.mrr_movement_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, stream_id bigint, original_transaction_id text, kind text, product_id text,
    currency text, monthly_milliunits bigint, price_basis text, ended_state text, ended_reason text)
LANGUAGE sql STABLE AS $$
    SELECT m.day, d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, m.kind, m.product_id, m.currency,
           m.amount, m.price_basis, m.ended_state, m.ended_reason
    FROM perennial.paying_days_as_known(known_at, time_zone) d
    CROSS JOIN LATERAL (
        SELECT d.first_day AS day, CASE WHEN d.previous_end_day IS NULL THEN 'new' ELSE 'reactivation' END AS kind,
               d.product_id, d.currency, d.monthly_milliunits AS amount, d.price_basis, NULL AS ended_state,
               NULL AS ended_reason
        WHERE COALESCE(d.previous_end_day < d.first_day, true)
        UNION ALL
        SELECT d.first_day, CASE WHEN d.monthly_milliunits > d.previous_monthly_milliunits THEN 'expansion'
                                 ELSE 'contraction' END,
               d.product_id, d.currency, d.monthly_milliunits - d.previous_monthly_milliunits, d.price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency = d.currency
          AND d.previous_monthly_milliunits <> d.monthly_milliunits
        UNION ALL
        SELECT d.first_day, 'contraction', d.previous_product_id, d.previous_currency, -d.previous_monthly_milliunits,
               d.previous_price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency IS DISTINCT FROM d.currency
          AND d.previous_monthly_milliunits IS NOT NULL
        UNION ALL
        SELECT d.first_day, 'expansion', d.product_id, d.currency, d.monthly_milliunits, d.price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency IS DISTINCT FROM d.currency
          AND d.monthly_milliunits IS NOT NULL
        UNION ALL
        SELECT d.end_day, 'churn', d.product_id, d.currency, -d.monthly_milliunits, d.price_basis, d.ended_state,
               d.ended_reason
        WHERE COALESCE(d.next_first_day > d.end_day, true)) m
$$;

-- What every subscription will renew to and when, by its newest facts; offer: of the next renewal, where Apple names one.
CREATE VIEW perennial.renewal_now AS
SELECT a.bundle_id, s.environment::text AS environment, s.subscription_id AS stream_id, s.original_transaction_id,
       s.will_renew, s.expires_at, s.renews_to_product_id,
       CASE WHEN s.renewal ->> 'promotional_offer_id' IS NOT NULL THEN 'promotional_offer'
            WHEN s.renewal ->> 'offer_code_ref_name' IS NOT NULL THEN 'offer_code' END AS offer,
       'price_consent_pending' = ANY (s.flags) AS price_consent_pending, s.as_of, s.checked_at, s.next_check_at
FROM ledger.subscription s JOIN ledger.app a USING (app_id)
WHERE s.version > 0;

-- Trials and how they went, as known at an instant; what is not told before then has not happened. A trial is a run of free
-- trial periods of one subscription, not shared by the family. It is 'converted' if a period that is paid for began within
-- 65 days of its end (Apple tries to charge for 60), else 'running', 'pending' while access goes on or billing is retried,
-- and 'lost' from when the timeline says that it is over.
CREATE FUNCTION perennial.trials_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz)
LANGUAGE sql STABLE AS $$
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
                       PARTITION BY b.bundle_id, b.environment, b.stream_id ORDER BY b.purchased_at, b.charge_id) AS run,
                   min(b.purchased_at) FILTER (WHERE b.offer IS DISTINCT FROM 'trial') OVER (
                       PARTITION BY b.bundle_id, b.environment, b.stream_id ORDER BY b.purchased_at, b.charge_id
                       ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS paid_at
            FROM (
                SELECT c.*, lag(c.offer) OVER (
                           PARTITION BY c.bundle_id, c.environment, c.stream_id ORDER BY c.purchased_at, c.charge_id)
                           IS DISTINCT FROM c.offer AS begins
                FROM perennial.charge_history c
                WHERE c.kind = 'subscription' AND NOT c.is_family_shared AND c.purchased_at <= LEAST(known_at, now())
                  AND COALESCE(c.cancelled_at > c.purchased_at, true)
                  AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)) b) p
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

-- Signed, so that a sum is net revenue; an amount that nobody knows is null.
DROP VIEW perennial.revenue_event;
CREATE VIEW perennial.revenue_event AS
SELECT r.occurred_at, r.bundle_id, r.environment, c.name AS customer, r.original_transaction_id, r.kind, r.product_id,
       r.amount_milliunits, r.currency, r.price_basis, r.recorded_at
FROM perennial.revenue_as_known('infinity') r
LEFT JOIN ledger.ownership s
    ON r.charge_kind = 'subscription' AND s.subscription_id = r.stream_id AND upper_inf(s.known) AND s.valid @> now()
LEFT JOIN ledger.ownership p
    ON r.charge_kind = 'purchase' AND p.purchase_id = r.stream_id AND upper_inf(p.known) AND p.valid @> now()
LEFT JOIN ledger.customer c ON c.customer_id = COALESCE(s.customer_id, p.customer_id);

-- Receipts, how Apple answered last, and when they are asked about next.
CREATE VIEW perennial.receipt_now AS
SELECT r.receipt_id, a.bundle_id, r.environment::text AS environment,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY u.uploaded_at, c.name) AS customers,
       r.outcome::text AS outcome, r.reason, r.received_at, GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, r.rejections, r.rejected_since,
       GREATEST(s.due_at, s.scheduled_for) AS due_at, s.scheduled_for,
       (ARRAY['new', 'edge', 'retry', 'import', 'sweep', 'quarantine'])[s.lane + 1] AS lane, s.attempts, s.crashes,
       s.leased_by IS NOT NULL AS is_leased, s.leased_by IS NOT NULL AND s.due_at > now() AS is_in_flight,
       b.open_until AS paused_until, CASE WHEN b.open_until > now() THEN b.open_reason END AS paused_because
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.app_budget b USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id);

-- What Apple answered: one row per meaning a receipt was given, from the first to the last answer that meant it.
CREATE VIEW perennial.answer_log AS
SELECT o.observation_id, o.receipt_id, a.bundle_id, o.environment::text AS environment, o.outcome::text AS outcome, o.status,
       o.reason, o.first_as_of, o.last_as_of, o.recorded_at
FROM ledger.observation o JOIN ledger.app a USING (app_id);

-- Who owned which subscription or one-time purchase, with when that was so and when we said so.
CREATE VIEW perennial.ownership_log AS
SELECT a.bundle_id, COALESCE(s.environment, p.environment)::text AS environment,
       CASE WHEN s.subscription_id IS NULL THEN 'purchase' ELSE 'subscription' END AS kind,
       COALESCE(s.subscription_id, p.purchase_id) AS stream_id,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, c.name AS customer,
       COALESCE(lower(o.valid), '-infinity') AS valid_from, COALESCE(upper(o.valid), 'infinity') AS valid_until,
       lower(o.known) AS known_from, upper(o.known) AS known_until
FROM ledger.ownership o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id);

-- Which customers sent a receipt that holds which subscription.
CREATE VIEW perennial.claim_log AS
SELECT a.bundle_id, s.environment::text AS environment, s.original_transaction_id, l.receipt_id, c.name AS customer,
       u.uploaded_at, u.imported
FROM ledger.receipt_subscription l
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
JOIN ledger.upload u USING (receipt_id)
JOIN ledger.customer c USING (customer_id);

-- How far the feed is behind what was committed.
CREATE VIEW perennial.feed_now AS
SELECT f.feed_id, (SELECT COALESCE(max(position), 0) FROM ledger.event_feed) AS position,
       (SELECT count(*) FROM ledger.event_outbox) AS unsequenced,
       (SELECT min(e.recorded_at) FROM ledger.event_outbox o JOIN ledger.event e USING (event_id)) AS unsequenced_since
FROM ledger.feed f;

-- Workers that said they are alive within the last two minutes.
CREATE VIEW perennial.worker_now AS
SELECT worker_id, host, pid, started_at, heartbeat_at FROM ledger.worker
WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes';
