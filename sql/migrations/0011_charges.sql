-- What reports begin with: their variables, the history as it was known at any instant, and every charge with its price.

-- A report is one statement, and a variable is the same throughout it. So the functions that read variables are
-- IMMUTABLE: the planner calls them before anything runs, sees a literal, reads each variable once, and reports a wrong
-- one even if there are no rows. known_app has this mark on purpose although it reads a table, which IMMUTABLE forbids:
-- an app that is known stays known.
CREATE FUNCTION perennial.instant(value text, time_zone text) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET TimeZone = 'UTC' AS $$
BEGIN
    PERFORM set_config('TimeZone', time_zone, true);
    RETURN value::timestamptz;
END $$;
COMMENT ON FUNCTION perennial.instant IS
    'The instant of a report''s variable: a date or an instant; without a zone of its own it is in time_zone';

CREATE FUNCTION perennial.day_of(value text, time_zone text) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (perennial.instant(value, time_zone) AT TIME ZONE time_zone)::date
$$;
COMMENT ON FUNCTION perennial.day_of IS
    'The first day whose end comes after the instant of a variable, in time_zone. Of until: the days before it end '
    'in time';

CREATE FUNCTION perennial.known_app(bundle_id text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    known_max constant int := 20;
    known text;
BEGIN
    IF EXISTS (SELECT FROM perennial.app_now a WHERE a.bundle_id = known_app.bundle_id) THEN
        RETURN bundle_id;
    END IF;
    SELECT string_agg(n.bundle_id, ', ' ORDER BY n.bundle_id) FILTER (WHERE n.place <= known_max)
               || CASE WHEN count(*) > known_max THEN format(' and %s more', count(*) - known_max) ELSE '' END
    INTO known
    FROM (SELECT a.bundle_id, row_number() OVER (ORDER BY a.bundle_id) AS place FROM perennial.app_now a) n;
    RAISE EXCEPTION 'There is no app %; %.', bundle_id,
        COALESCE('known: ' || known, 'there is none yet, add it with `perennial app add`');
END $$;
COMMENT ON FUNCTION perennial.known_app IS
    'Returns the bundle id, or fails with the known ones if there is no such app';

CREATE FUNCTION perennial.known_environment(environment text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF environment IN ('Production', 'Sandbox') THEN
        RETURN environment;
    END IF;
    RAISE EXCEPTION 'There is no environment %; known: Production, Sandbox.', environment;
END $$;
COMMENT ON FUNCTION perennial.known_environment IS
    'Returns the environment, or fails with the known ones if there is no such environment';

CREATE FUNCTION perennial.bucket_length(bucket text) RETURNS interval
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    CASE lower(bucket)
        WHEN 'day', 'week', 'month', 'year' THEN RETURN ('1 ' || bucket)::interval;
        WHEN 'quarter' THEN RETURN interval '3 months';
        ELSE RAISE EXCEPTION 'There is no bucket %; known: day, week, month, quarter, year.', bucket;
    END CASE;
END $$;
COMMENT ON FUNCTION perennial.bucket_length IS
    'How long a bucket (day, week, month, quarter, year) is; fails with the known ones if there is no such bucket';

CREATE FUNCTION perennial.is_complete(
    since timestamp, bucket text, time_zone text, "from" text, until text, known_at timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT since AT TIME ZONE time_zone >= perennial.instant("from", time_zone)
        AND (since + perennial.bucket_length(bucket)) AT TIME ZONE time_zone
            <= LEAST(perennial.instant(until, time_zone), known_at, now())
$$;
COMMENT ON FUNCTION perennial.is_complete IS
    'Whether all of the bucket that begins at since lies between the two variables "from" and until, and is over at '
    'known_at. since is a time of day in time_zone';

CREATE FUNCTION perennial.known_dimension("by" text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF "by" IN ('total', 'product') THEN
        RETURN "by";
    END IF;
    RAISE EXCEPTION 'There is no dimension %; known: total, product.', "by";
END $$;
COMMENT ON FUNCTION perennial.known_dimension IS
    'Returns what a report is by (total, product), or fails with the known ones if there is no such dimension';

-- The functions below are one expression each, which the planner puts where it is used. For by = total it computes no
-- product at all.
CREATE FUNCTION perennial.product_by("by" text, product_id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE perennial.known_dimension("by") WHEN 'product' THEN product_id ELSE '' END
$$;
COMMENT ON FUNCTION perennial.product_by IS 'The product if a report is by product; empty if it shows the total';

CREATE FUNCTION perennial.last_day(until text, time_zone text, known_at timestamptz) RETURNS date
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT LEAST(perennial.day_of(until, time_zone) - 1,
                 ((LEAST(known_at, now()) - interval '1 microsecond') AT TIME ZONE time_zone)::date)
$$;
COMMENT ON FUNCTION perennial.last_day IS
    'The last day of a report of days'' ends: the last one that ends in time for until, or the one that still runs at '
    'known_at or now';

CREATE FUNCTION perennial.counted_day(at timestamptz, time_zone text, clock timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (at AT TIME ZONE time_zone)::date
        + (at > clock AND (at AT TIME ZONE time_zone)::date = (clock AT TIME ZONE time_zone)::date)::int
$$;
COMMENT ON FUNCTION perennial.counted_day IS
    'The first day at whose end an instant has passed. The day that runs at clock ends there: what is still to come of '
    'it counts from the next day on. With clock infinity every day ends at its midnight';

-- The views below join plainly, so that the planner looks into them.
CREATE VIEW perennial.subscription_key AS
SELECT s.subscription_id AS stream_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id
FROM ledger.subscription s JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.subscription_key IS 'One row per subscription: its key in these views, and its names';

CREATE VIEW perennial.timeline AS
SELECT a.bundle_id, s.environment::text AS environment, s.subscription_id, s.original_transaction_id, t.product_id,
       t.state::text AS state, t.reason::text AS reason, t.entitled, t.flags,
       COALESCE(lower(t.valid), '-infinity') AS valid_from, COALESCE(upper(t.valid), 'infinity') AS valid_until,
       CASE WHEN t.entitled THEN COALESCE(upper(t.valid), 'infinity')
            WHEN t.allowed_until IS NOT NULL THEN LEAST(t.allowed_until, COALESCE(upper(t.valid), 'infinity'))
            END AS access_until,
       lower(t.known) AS known_from, upper(t.known) AS known_until
FROM ledger.subscription_span t
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.timeline IS
    'Every span of every timeline (valid), with when Perennial recorded it (known). The newest timeline is where '
    'known_until is null';

-- A one-time purchase has no sale: its reason names a kind that leaves the amount unknown.
CREATE FUNCTION ledger.refunded_share(
    percentage int, sale jsonb, reason text, is_upgraded boolean) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN sale ->> 'revocation_type' NOT IN ('REFUND_FULL', 'REFUND_PRORATED')
                  OR NOT is_upgraded AND reason NOT IN ('0', '1') THEN NULL
                WHEN is_upgraded AND sale ->> 'plan' = 'MONTHLY' THEN percentage / 100000.0
                WHEN sale ->> 'revocation_type' = 'REFUND_PRORATED' THEN percentage / 100000.0
                ELSE COALESCE(percentage / 100000.0, 1) END
$$;
COMMENT ON FUNCTION ledger.refunded_share IS
    'Which share of the price Apple gave back with a revocation: what it states, everything where it states no kind (as '
    'before 2025: assumed, so that the share is 1 beside a percentage that is null), and null where the kind or the reason '
    'is not known. A payment of a term that was replaced may be prorated: only what Apple states of it is known';

CREATE VIEW perennial.period_version AS
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
           COALESCE(facts_recorded_at, recorded_at) AS known_from,
           NULL::timestamptz AS known_until
    FROM ledger.period WHERE NOT ledger.is_moved(is_upgraded, cancellation_reason)
    UNION ALL
    SELECT period_id, subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded,
           is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
           revocation_percentage, sale, cancellation_reason, recorded_at, cancellation_recorded_at, lower(known),
           upper(known)
    FROM ledger.period_history WHERE NOT isempty(known) AND NOT ledger.is_moved(is_upgraded, cancellation_reason)) p;
COMMENT ON VIEW perennial.period_version IS
    'Every period as it was known for a while, without the names of what it belongs to';

CREATE VIEW perennial.period_history AS
SELECT k.bundle_id, k.environment, p.stream_id, p.charge_id, k.original_transaction_id, p.product_id, p.quantity,
       p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.offer, p.is_family_shared,
       p.first_known_at, p.cancellation_known_at, p.known_from, p.known_until, p.price_milliunits, p.currency,
       p.revocation_percentage, p.plan, p.payment_number, p.payments, p.seats, p.revoked_seats, p.is_one_of_several,
       p.refunded_share
FROM perennial.period_version p JOIN perennial.subscription_key k USING (stream_id);
COMMENT ON VIEW perennial.period_history IS
    'Every period as it was known for a while, with the names of its subscription';

CREATE VIEW perennial.purchase_history AS
SELECT a.bundle_id, p.environment::text AS environment, p.purchase_id AS stream_id, p.original_transaction_id,
       p.product_id, h.quantity, h.purchased_at, h.revoked_at, p.first_recorded_at AS first_known_at,
       h.revocation_recorded_at AS revocation_known_at, h.known_from, h.known_until, h.price_milliunits,
       h.price_currency AS currency, h.revocation_percentage,
       ledger.is_shared(p.facts #>> '{ownership,word}') AS is_family_shared,
       ledger.refunded_share(h.revocation_percentage, NULL, p.facts #>> '{revocation,reason}', false) AS refunded_share
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
COMMENT ON VIEW perennial.purchase_history IS 'Every one-time purchase as it was known for a while';

CREATE VIEW perennial.charge_history AS
SELECT bundle_id, environment, 'subscription' AS kind, stream_id, charge_id, original_transaction_id, product_id,
       quantity, purchased_at, expires_at, cancelled_at, is_upgraded, offer, is_family_shared, first_known_at,
       cancellation_known_at, known_from, known_until, price_milliunits, currency, revocation_percentage, plan, seats,
       revoked_seats, is_one_of_several, refunded_share
FROM perennial.period_history
UNION ALL
SELECT bundle_id, environment, 'purchase', stream_id, stream_id, original_transaction_id, product_id, quantity,
       purchased_at, NULL, revoked_at, false, NULL, is_family_shared, first_known_at, revocation_known_at, known_from,
       known_until, price_milliunits, currency, revocation_percentage, NULL, NULL, 0, false, refunded_share
FROM perennial.purchase_history;
COMMENT ON VIEW perennial.charge_history IS
    'Every period and one-time purchase as it was known for a while. (kind, charge_id) identifies a charge, (kind, '
    'stream_id) what it belongs to';

CREATE VIEW perennial.period_alias AS
SELECT p.subscription_id AS stream_id, a.transaction_id, p.period_id AS charge_id
FROM ledger.transaction_alias a JOIN ledger.period p USING (period_id);
COMMENT ON VIEW perennial.period_alias IS
    'The transaction ids of each period; detail.transaction_id of the period''s event is one of them';

CREATE VIEW perennial.subscription_event AS
SELECT subscription_id AS stream_id, kind::text AS kind, product_id, occurred_at, as_of, recorded_at, version, ordinal,
       detail
FROM ledger.event WHERE subscription_id IS NOT NULL;
COMMENT ON VIEW perennial.subscription_event IS
    'The events of subscriptions with Apple''s clock, also those that have no position yet';

CREATE VIEW perennial.price_history AS
SELECT a.bundle_id, p.product_id, p.storefront, p.price_milliunits, p.currency,
       COALESCE(lower(p.valid), '-infinity') AS valid_from, COALESCE(upper(p.valid), 'infinity') AS valid_until,
       COALESCE(lower(p.known), '-infinity') AS known_from, upper(p.known) AS known_until
FROM ledger.product_price p JOIN ledger.app a USING (app_id) WHERE NOT isempty(p.known);
COMMENT ON VIEW perennial.price_history IS
    'The catalog''s prices, when they apply (valid), and when the catalog changed (known)';

CREATE VIEW perennial.small_business_history AS
SELECT a.bundle_id, COALESCE(lower(b.valid), '-infinity') AS valid_from,
       COALESCE(upper(b.valid), 'infinity') AS valid_until, COALESCE(lower(b.known), '-infinity') AS known_from,
       upper(b.known) AS known_until
FROM ledger.small_business b JOIN ledger.app a USING (app_id) WHERE NOT isempty(b.valid) AND NOT isempty(b.known);
COMMENT ON VIEW perennial.small_business_history IS
    'When an app''s owner is in the Small Business Program (valid), and when that was stated (known)';

CREATE VIEW perennial.period_stated_price AS
SELECT w.stated_id, w.stated_at, l.subscription_id AS stream_id, w.storefront, w.price_milliunits, w.currency
FROM ledger.stated_price w JOIN ledger.receipt_subscription l USING (receipt_id);
COMMENT ON VIEW perennial.period_stated_price IS
    'What uploads reported of storefront and price, once for each subscription in the receipt';

CREATE VIEW perennial.purchase_stated_price AS
SELECT w.stated_id, w.stated_at, l.purchase_id AS stream_id, w.storefront, w.price_milliunits, w.currency
FROM ledger.stated_price w JOIN ledger.receipt_purchase l USING (receipt_id);
COMMENT ON VIEW perennial.purchase_stated_price IS
    'What uploads reported of storefront and price, once for each one-time purchase in the receipt';

CREATE VIEW perennial.stated_price AS
SELECT stated_id, stated_at, 'subscription' AS kind, stream_id, storefront, price_milliunits, currency
FROM perennial.period_stated_price
UNION ALL
SELECT stated_id, stated_at, 'purchase', stream_id, storefront, price_milliunits, currency
FROM perennial.purchase_stated_price;
COMMENT ON VIEW perennial.stated_price IS
    'What uploads reported of storefront and price, once for each thing in the receipt that it may be about';

-- Here and in the next files known_at 'infinity' means now, and streams limits a function to these subscriptions (null:
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
    offer text, is_family_shared boolean, apple bigint, stated bigint, storefront bigint, "default" bigint,
    apple_currency text, plan text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN is_family_shared THEN NULL
                WHEN apple IS NOT NULL THEN 'apple'
                WHEN offer IS NOT DISTINCT FROM 'trial' THEN NULL
                WHEN stated IS NOT NULL THEN 'stated'
                WHEN offer IS NOT NULL OR apple_currency IS NOT NULL OR plan <> 'BILLED_UPFRONT' THEN 'unknown'
                WHEN storefront IS NOT NULL THEN 'storefront'
                WHEN "default" IS NOT NULL THEN 'default'
                ELSE 'unknown' END
$$;
COMMENT ON FUNCTION ledger.price_basis IS
    'Where the price of a charge comes from, given the prices that there are: Apple''s in a signed transaction; else '
    'stated at intake or import; else the catalog''s of the storefront; else that of the default one; else unknown. '
    'The catalog does not price offers, nor payments of a term or by a plan that is not known, nor what Apple states in a '
    'form that cannot be read: then there is its currency alone. Trials and what a family shares are no charges: null, but for a trial that Apple itself prices, at 0';

CREATE FUNCTION ledger.price_of(
    offer text, is_family_shared boolean, plan text, quantity int, apple bigint, apple_currency text,
    stated bigint, stated_currency text, storefront bigint, storefront_currency text, "default" bigint,
    default_currency text)
RETURNS TABLE (basis text, amount bigint, currency text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT b.basis,
           -- Apple's price is that of the whole quantity.
           CASE b.basis WHEN 'apple' THEN apple WHEN 'stated' THEN quantity * stated
                        WHEN 'storefront' THEN quantity * storefront WHEN 'default' THEN quantity * "default" END,
           CASE b.basis WHEN 'apple' THEN apple_currency WHEN 'stated' THEN stated_currency
                        WHEN 'storefront' THEN storefront_currency WHEN 'default' THEN default_currency END
    FROM (SELECT ledger.price_basis(
        offer, is_family_shared, apple, stated, storefront, "default", apple_currency, plan) AS basis) b
$$;
COMMENT ON FUNCTION ledger.price_of IS
    'The price of a charge, given the prices that there are, and where it comes from (ledger.price_basis)';

CREATE FUNCTION ledger.catalog_price(
    bundle_id text, product_id text, storefront text, purchased_at timestamptz, known_at timestamptz)
RETURNS TABLE (price_milliunits bigint, currency text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT p.price_milliunits, p.currency FROM perennial.price_history p
    WHERE p.bundle_id = catalog_price.bundle_id AND p.product_id = catalog_price.product_id
      AND p.storefront = catalog_price.storefront
      AND p.valid_from <= catalog_price.purchased_at AND catalog_price.purchased_at < p.valid_until
      AND p.known_from <= catalog_price.known_at AND COALESCE(p.known_until > catalog_price.known_at, true)
$$;
COMMENT ON FUNCTION ledger.catalog_price IS
    'The catalog''s price of a product in a storefront (empty: the default one) for a purchase, as known at an instant';

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
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz, revocation_percentage int, seats int,
    revoked_seats int, is_one_of_several boolean, refunded_share numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.bundle_id, c.environment, c.stream_id, c.charge_id, c.original_transaction_id, c.product_id, c.quantity,
           c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared, place.storefront,
           price.amount, price.currency, price.basis, c.first_known_at, c.cancellation_known_at, c.revocation_percentage,
           c.seats, c.revoked_seats, c.is_one_of_several, c.refunded_share
    FROM perennial.period_history c
    LEFT JOIN ledger.stated_charge_price(known_at, streams) stated ON NOT stated.is_purchase AND stated.charge_id = c.charge_id
    LEFT JOIN ledger.storefronts_of(known_at, streams) place
        ON place.stream_id = c.stream_id AND place.valid_from <= c.purchased_at AND c.purchased_at < place.valid_until
    LEFT JOIN LATERAL ledger.catalog_price(
        c.bundle_id, c.product_id, place.storefront, c.purchased_at, known_at) there ON true
    LEFT JOIN LATERAL ledger.catalog_price(c.bundle_id, c.product_id, '', c.purchased_at, known_at) anywhere ON true
    CROSS JOIN LATERAL ledger.price_of(
        c.offer, c.is_family_shared, c.plan, c.quantity, c.price_milliunits, c.currency, stated.price_milliunits,
        stated.currency, there.price_milliunits, there.currency, anywhere.price_milliunits, anywhere.currency) price
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
           price.amount, price.currency, price.basis, c.first_known_at, c.revocation_known_at, c.revocation_percentage,
           NULL, 0, false, c.refunded_share
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
    LEFT JOIN LATERAL ledger.catalog_price(
        c.bundle_id, c.product_id, place.storefront, c.purchased_at, known_at) there ON true
    LEFT JOIN LATERAL ledger.catalog_price(c.bundle_id, c.product_id, '', c.purchased_at, known_at) anywhere ON true
    CROSS JOIN LATERAL ledger.price_of(
        NULL, c.is_family_shared, NULL, c.quantity, c.price_milliunits, c.currency, stated.price_milliunits,
        stated.currency, there.price_milliunits, there.currency, anywhere.price_milliunits, anywhere.currency) price
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

-- The function is one expression, which the planner puts where it is used.
CREATE FUNCTION ledger.months(period text, purchased_at timestamptz, expires_at timestamptz) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE right(period, 1)
        WHEN 'Y' THEN 12.0 * substr(period, 2, length(period) - 2)::int
        WHEN 'M' THEN substr(period, 2, length(period) - 2)::numeric
        WHEN 'W' THEN 7.0 * substr(period, 2, length(period) - 2)::int * 12 / 365.25
        WHEN 'D' THEN substr(period, 2, length(period) - 2)::numeric * 12 / 365.25
        ELSE CASE
            WHEN expires_at - purchased_at >= interval '25 days'
                THEN round(extract(epoch FROM expires_at - purchased_at) / 86400 * 12 / 365.25)
            WHEN expires_at - purchased_at >= interval '6 days'
                THEN round(extract(epoch FROM expires_at - purchased_at) / 86400 / 7) * 7 * 12 / 365.25
            WHEN expires_at - purchased_at >= interval '1 day'
                THEN round(extract(epoch FROM expires_at - purchased_at) / 86400) * 12 / 365.25 END END
$$;
COMMENT ON FUNCTION ledger.months IS
    'How many months a period lasts: by the catalog, else (and for offers) by its own length in whole months or '
    'weeks. A month has 365.25 / 12 days. Null for less than a day, such as a sandbox period without a catalog';

CREATE FUNCTION ledger.kind_of_return(environment text, gap interval, was_failing boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN gap > interval '65 days' THEN 'subscription.reactivated'
                WHEN was_failing THEN 'subscription.recovered'
                WHEN gap <= CASE environment WHEN 'Sandbox' THEN interval '10 minutes' ELSE interval '1 hour' END
                    THEN 'subscription.renewed'
                ELSE 'subscription.reactivated' END
$$;
COMMENT ON FUNCTION ledger.kind_of_return IS
    'The kind of event that the period after another one would have had, where the feed has none because both were '
    'there at first sight. The rule is that of the events. Whether renewal was on at an end before first sight is '
    'unknown: only what Apple still tried to charge (was_failing), or what came within the tolerance, went on';
