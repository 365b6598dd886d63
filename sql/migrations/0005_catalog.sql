-- The catalog: products, what they are and grant, their offers, dated prices, and the prices that uploads report.

CREATE TYPE ledger.product_kind AS ENUM ('auto_renewable', 'non_renewing', 'consumable', 'non_consumable');
COMMENT ON TYPE ledger.product_kind IS
    'What a product of the catalog is, in the words of App Store Connect. non_renewing: a subscription that ends after '
    'the catalog''s period, because Apple knows no end of it';

CREATE TABLE ledger.product (
    app_id            int NOT NULL REFERENCES ledger.app,
    product_id        text NOT NULL,
    group_id          text,
    level             int,
    period            text,
    price_milliunits  bigint,
    currency          text,
    kind              ledger.product_kind,
    credit            text,
    units             int,
    delivers_since    timestamptz,
    units_since       timestamptz NOT NULL DEFAULT now(),
    slot              text,
    slot_place        int,
    PRIMARY KEY (app_id, product_id),
    CONSTRAINT product_price_has_currency CHECK ((price_milliunits IS NULL) = (currency IS NULL)),
    CONSTRAINT product_period_is_iso_8601 CHECK (period ~ '^P[0-9]+[DWMY]$'),
    CONSTRAINT product_credit_of_consumable CHECK (
        CASE kind WHEN 'consumable' THEN num_nulls(credit, units) = 0 AND units > 0 ELSE num_nonnulls(credit, units) = 0 END),
    CONSTRAINT product_non_renewing_has_period CHECK (kind <> 'non_renewing' OR period IS NOT NULL),
    CONSTRAINT product_delivers_only_with_kind CHECK (delivers_since IS NULL OR kind IS NOT NULL),
    CONSTRAINT product_slot_has_place CHECK ((slot IS NULL) = (slot_place IS NULL) AND slot_place > 0),
    CONSTRAINT product_slot_place_is_taken_once UNIQUE (app_id, slot, slot_place) DEFERRABLE INITIALLY DEFERRED
);
COMMENT ON TABLE ledger.product IS 'The products of the catalog as it is now';
COMMENT ON COLUMN ledger.product.group_id IS 'The subscription group';
COMMENT ON COLUMN ledger.product.level IS 'The level in the subscription group; 1 is the highest';
COMMENT ON COLUMN ledger.product.period IS
    'How long a period lasts, as an ISO 8601 duration such as P1M; null: no subscription, or unknown';
COMMENT ON COLUMN ledger.product.price_milliunits IS 'The price of the default storefront, in thousandths of currency';
COMMENT ON COLUMN ledger.product.kind IS
    'What the product is; null: the catalog does not say, so a purchase of it is kept for good and delivers nothing';
COMMENT ON COLUMN ledger.product.credit IS 'What a consumable adds to, such as coins';
COMMENT ON COLUMN ledger.product.units IS 'How many units of the credit one of it adds';
COMMENT ON COLUMN ledger.product.delivers_since IS
    'What was bought before is not delivered; null: see ledger.product_terms.delivers_since';
COMMENT ON COLUMN ledger.product.units_since IS 'Since when it gives these units of this credit';
COMMENT ON COLUMN ledger.product.slot IS 'The products of a slot replace one another on sale';
COMMENT ON COLUMN ledger.product.slot_place IS 'The place in the slot; 1 is offered first';

CREATE TABLE ledger.product_terms (
    app_id          int NOT NULL REFERENCES ledger.app,
    product_id      text NOT NULL,
    kind            ledger.product_kind,
    duration        interval,
    applied_at      timestamptz NOT NULL,
    delivers_since  timestamptz,
    PRIMARY KEY (app_id, product_id, applied_at),
    CONSTRAINT product_terms_duration_of_non_renewing
        CHECK ((duration IS NOT NULL) = (kind IS NOT DISTINCT FROM 'non_renewing')),
    CONSTRAINT product_terms_deliver_with_kind CHECK ((delivers_since IS NULL) = (kind IS NULL))
);
COMMENT ON TABLE ledger.product_terms IS
    'What each product was, catalog by catalog. Rows are only added: one where the kind or the duration differs from '
    'the row before. The first one holds for the time before it too';
COMMENT ON COLUMN ledger.product_terms.kind IS 'Null: the catalog named no kind, or did not name the product any more';
COMMENT ON COLUMN ledger.product_terms.duration IS 'How long one of a non-renewing subscription lasts';
COMMENT ON COLUMN ledger.product_terms.applied_at IS 'When the catalog was applied, by our clock';
COMMENT ON COLUMN ledger.product_terms.delivers_since IS
    'What was bought before is not delivered, unless the catalog states another instant: when the product got this kind '
    'first, so that an upgrade or an import releases nothing. Where it had been sold before a catalog named it: a day '
    'before it was first seen';

CREATE FUNCTION ledger.product_terms_at(app_id int, product_id text, at timestamptz, known_at timestamptz)
RETURNS SETOF ledger.product_terms
LANGUAGE sql STABLE AS $$
    SELECT t.* FROM ledger.product_terms t
    WHERE t.app_id = product_terms_at.app_id AND t.product_id = product_terms_at.product_id
      AND t.applied_at <= product_terms_at.known_at
    ORDER BY t.applied_at <= product_terms_at.at DESC, abs(EXTRACT(epoch FROM t.applied_at - product_terms_at.at))
    LIMIT 1
$$;
COMMENT ON FUNCTION ledger.product_terms_at IS
    'What a product was at an instant, as the catalog was known at known_at; no row: no catalog named it with a kind';

CREATE FUNCTION ledger.non_renewing_duration(
    app_id int, product_id text, first_seen timestamptz, catalog_at timestamptz, known_at timestamptz) RETURNS interval
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        (SELECT t.duration FROM ledger.product_terms_at(app_id, product_id, first_seen, known_at) t), now.duration)
    FROM ledger.product_terms_at(app_id, product_id, catalog_at, known_at) now
    WHERE now.kind = 'non_renewing'
$$;
COMMENT ON FUNCTION ledger.non_renewing_duration IS
    'How long a purchase lasts that was first seen at an instant: the duration of the catalog of that instant; null: '
    'the product is no non-renewing subscription at catalog_at';

CREATE TABLE ledger.catalog_grant (
    app_id       int NOT NULL REFERENCES ledger.app,
    product_id   text NOT NULL,
    entitlement  text NOT NULL,
    valid        tstzrange NOT NULL,
    known        tstzrange NOT NULL,
    CONSTRAINT catalog_grant_says_one_thing EXCLUDE USING gist
        (app_id WITH =, product_id WITH =, entitlement WITH =, valid WITH &&, known WITH &&)
);
CREATE INDEX catalog_grant_open ON ledger.catalog_grant (app_id, product_id) WHERE upper_inf(known);
COMMENT ON TABLE ledger.catalog_grant IS 'Which product grants which entitlement. A change closes known and adds a row';
COMMENT ON COLUMN ledger.catalog_grant.entitlement IS
    'The entitlement; empty: the catalog names the product, so it does not grant its own id';
COMMENT ON COLUMN ledger.catalog_grant.valid IS 'When the grant applies; half-open';
COMMENT ON COLUMN ledger.catalog_grant.known IS 'When the catalog changed, by our clock; half-open';

CREATE FUNCTION ledger.grants(app_id int, product_id text, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (entitlement text, is_named boolean)
LANGUAGE sql STABLE AS $$
    SELECT g.entitlement, true FROM ledger.catalog_grant g
    WHERE g.app_id = grants.app_id AND g.product_id = grants.product_id AND g.valid @> valid_at AND g.known @> known_at
      AND g.entitlement <> ''
    UNION ALL
    SELECT grants.product_id, false
    WHERE NOT EXISTS (
        SELECT FROM ledger.catalog_grant g
        WHERE g.app_id = grants.app_id AND g.product_id = grants.product_id AND g.entitlement = ''
          AND g.valid @> valid_at AND g.known @> known_at)
$$;
COMMENT ON FUNCTION ledger.grants IS
    'The entitlements that a product grants at valid_at as the catalog was known at known_at. A subscription that no '
    'catalog names (is_named) grants one with the product''s own id; a one-time purchase that none names grants nothing';

CREATE TABLE ledger.product_offer (
    app_id      int NOT NULL,
    product_id  text NOT NULL,
    offer_id    text NOT NULL,
    audience    text[] NOT NULL,
    valid       tstzrange NOT NULL,
    once        boolean NOT NULL,
    PRIMARY KEY (app_id, product_id, offer_id),
    FOREIGN KEY (app_id, product_id) REFERENCES ledger.product ON DELETE CASCADE,
    CONSTRAINT product_offer_audience_known CHECK (audience <@ ARRAY['current', 'lapsed'] AND cardinality(audience) > 0),
    CONSTRAINT product_offer_is_valid_sometime CHECK (NOT isempty(valid))
);
COMMENT ON TABLE ledger.product_offer IS 'The promotional offers of the catalog as it is now';
COMMENT ON COLUMN ledger.product_offer.offer_id IS 'The offer''s identifier in App Store Connect';
COMMENT ON COLUMN ledger.product_offer.audience IS
    'Who may have it: current, who subscribes to a product of the app; lapsed, who did, and does to none of the group';
COMMENT ON COLUMN ledger.product_offer.valid IS 'When it may be signed; half-open';
COMMENT ON COLUMN ledger.product_offer.once IS 'Whether a customer may redeem it only once';

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
COMMENT ON TABLE ledger.product_price IS 'What a product costs. A change closes known and adds rows (ledger.record_price)';
COMMENT ON COLUMN ledger.product_price.storefront IS 'The storefront as uploads name it; empty: the default one';
COMMENT ON COLUMN ledger.product_price.valid IS 'When the price applies; half-open';
COMMENT ON COLUMN ledger.product_price.known IS 'When the catalog changed, by our clock; half-open';
COMMENT ON COLUMN ledger.product_price.price_milliunits IS 'In thousandths of currency';

CREATE FUNCTION ledger.record_price(
    app_id int, product_id text, storefront text, valid tstzrange, price_milliunits bigint, currency text,
    at timestamptz DEFAULT clock_timestamp())
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    reported ledger.product_price;
BEGIN
    FOR reported IN
        UPDATE ledger.product_price p SET known = tstzrange(lower(p.known), record_price.at)
        WHERE p.app_id = record_price.app_id AND p.product_id = record_price.product_id
          AND p.storefront = record_price.storefront
          AND upper_inf(p.known) AND p.valid && record_price.valid
        RETURNING p.*
    LOOP
        INSERT INTO ledger.product_price
        SELECT reported.app_id, reported.product_id, reported.storefront, rest.valid, tstzrange(record_price.at, NULL),
               reported.price_milliunits, reported.currency
        FROM (VALUES
            (CASE WHEN lower_inf(record_price.valid) THEN 'empty'
                  ELSE reported.valid * tstzrange(NULL, lower(record_price.valid)) END),
            (CASE WHEN upper_inf(record_price.valid) THEN 'empty'
                  ELSE reported.valid * tstzrange(upper(record_price.valid), NULL) END)
        ) rest (valid)
        WHERE NOT isempty(rest.valid);
    END LOOP;
    IF record_price.price_milliunits IS NOT NULL THEN
        INSERT INTO ledger.product_price VALUES
            (record_price.app_id, record_price.product_id, record_price.storefront, record_price.valid,
             tstzrange(record_price.at, NULL), record_price.price_milliunits, record_price.currency);
    END IF;
END $$;
COMMENT ON FUNCTION ledger.record_price IS
    'States what a product costs in a stretch of time and keeps what the catalog stated before; price_milliunits '
    'null: the product has no price then. at is the instant of the statement';

CREATE TABLE ledger.small_business (
    app_id  int NOT NULL REFERENCES ledger.app,
    valid   tstzrange NOT NULL,
    known   tstzrange NOT NULL DEFAULT tstzrange(now(), NULL),
    CONSTRAINT small_business_says_one_thing EXCLUDE USING gist (app_id WITH =, valid WITH &&, known WITH &&)
);
COMMENT ON TABLE ledger.small_business IS
    'When the app''s owner is in the Small Business Program: Apple keeps 15 % of everything then. valid and known '
    'as in ledger.product_price';

CREATE TABLE ledger.stated_price (
    stated_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    receipt_id        bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    customer_id       bigint NOT NULL REFERENCES ledger.customer ON DELETE CASCADE,
    stated_at         timestamptz NOT NULL,
    storefront        text,
    price_milliunits  bigint,
    currency          text,
    CONSTRAINT stated_price_says_something CHECK (num_nonnulls(storefront, price_milliunits) > 0),
    CONSTRAINT stated_price_has_currency CHECK ((price_milliunits IS NULL) = (currency IS NULL))
);
CREATE INDEX stated_price_of_receipt ON ledger.stated_price (receipt_id);
COMMENT ON TABLE ledger.stated_price IS
    'Every storefront and price that an upload reported; ledger.upload keeps only the newest';
COMMENT ON COLUMN ledger.stated_price.stated_at IS 'When the upload or the import that said it came, by our clock';
COMMENT ON COLUMN ledger.stated_price.price_milliunits IS 'In thousandths of currency';

CREATE FUNCTION ledger.store_stated_price() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.stated_price (receipt_id, customer_id, stated_at, storefront, price_milliunits, currency)
    SELECT NEW.receipt_id, NEW.customer_id,
           CASE WHEN TG_OP = 'UPDATE' AND NEW.uploaded_at = OLD.uploaded_at THEN clock_timestamp()
                ELSE NEW.uploaded_at END,
           NEW.storefront,
           CASE WHEN NEW.currency IS NOT NULL THEN NEW.price_milliunits END,
           CASE WHEN NEW.price_milliunits IS NOT NULL THEN NEW.currency END
    WHERE num_nonnulls(NEW.storefront, NEW.price_milliunits + length(NEW.currency)) > 0;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION ledger.store_stated_price IS
    'Keeps the storefront and the price of an upload; it ignores a price without currency. What an import says again of '
    'an upload is said now, whenever the upload came';

CREATE TRIGGER upload_says_price AFTER INSERT ON ledger.upload FOR EACH ROW
    WHEN (num_nonnulls(NEW.storefront, NEW.price_milliunits) > 0) EXECUTE FUNCTION ledger.store_stated_price();

CREATE TRIGGER upload_says_another_price AFTER UPDATE ON ledger.upload FOR EACH ROW
    WHEN ((NEW.storefront, NEW.price_milliunits, NEW.currency)
          IS DISTINCT FROM (OLD.storefront, OLD.price_milliunits, OLD.currency))
    EXECUTE FUNCTION ledger.store_stated_price();

CREATE VIEW ledger.price_mark AS
SELECT l.app_id, md5(string_agg(l.line, ',' ORDER BY l.line COLLATE "C"))::uuid AS price_mark
FROM (
    SELECT a.app_id, '' AS line FROM ledger.app a
    UNION ALL
    SELECT p.app_id, format('%L %L %s %s %s %s', p.product_id, p.storefront, extract(epoch FROM lower(p.valid)),
                            extract(epoch FROM upper(p.valid)), p.price_milliunits, p.currency)
    FROM ledger.product_price p WHERE upper_inf(p.known)
    UNION ALL
    SELECT d.app_id, format('%L %L', d.product_id, d.period) FROM ledger.product d
    UNION ALL
    SELECT b.app_id, format('%s %s', extract(epoch FROM lower(b.valid)), extract(epoch FROM upper(b.valid)))
    FROM ledger.small_business b WHERE upper_inf(b.known)) l
GROUP BY l.app_id;
COMMENT ON VIEW ledger.price_mark IS
    'One mark per app for everything that the catalog says of prices, periods and the Small Business Program: '
    'another mark means other figures';

CREATE FUNCTION perennial.set_price(
    bundle_id text, product_id text, storefront text, price_milliunits bigint, currency text,
    valid_from timestamptz DEFAULT NULL, valid_until timestamptz DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    SELECT ledger.record_price(
        ledger.app_key(bundle_id), product_id, storefront, tstzrange(valid_from, valid_until), price_milliunits, currency)
$$;
COMMENT ON FUNCTION perennial.set_price IS
    'Sets what a product costs in a storefront (empty: the default one), in thousandths of currency, from valid_from '
    '(null: ever) until valid_until (null: on and on). A price that is null ends the one before. Earlier knowledge is '
    'kept. For perennial_owner';

CREATE FUNCTION perennial.set_small_business(
    bundle_id text, valid_from timestamptz, valid_until timestamptz DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO ledger.small_business (app_id, valid)
    VALUES (ledger.app_key(bundle_id), tstzrange(valid_from, valid_until))
$$;
COMMENT ON FUNCTION perennial.set_small_business IS
    'States that the app''s owner is in Apple''s Small Business Program from valid_from until valid_until (null: on and '
    'on). For perennial_owner';

CREATE FUNCTION ledger.delivers_since(product ledger.product) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(product.delivers_since, (
        SELECT t.delivers_since FROM ledger.product_terms t
        WHERE t.app_id = product.app_id AND t.product_id = product.product_id
        ORDER BY t.applied_at DESC LIMIT 1))
$$;
COMMENT ON FUNCTION ledger.delivers_since IS 'What was bought of a product before this instant is not delivered';

-- What a refund takes back of the units that the catalog gave.
CREATE FUNCTION ledger.shown_percentage(facts jsonb) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (facts #>> '{refund_shown,percentage}')::int $$;
COMMENT ON FUNCTION ledger.shown_percentage IS
    'How much of the price of a one-time purchase an answer shows as given back; null where none does. What a notification '
    'alone states decides money, and no delivery';

CREATE FUNCTION ledger.taken_back(given bigint, refund_percentage int) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN refund_percentage < 100000 AND given IS NOT NULL
                THEN GREATEST(1, round(given * refund_percentage / 100000.0))::bigint
                ELSE given END
$$;
COMMENT ON FUNCTION ledger.taken_back IS
    'How many of the units that a purchase gave a refund takes back: the part of the price that Apple gave back, at least '
    'one; all where that part is not known';
