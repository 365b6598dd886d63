-- Orders: what customers are about to buy, from the tap to the delivery.
CREATE TYPE ledger.order_state AS ENUM (
    'created', 'purchasing', 'deferred', 'paid', 'delivered', 'cancelled', 'failed', 'expired', 'refunded');
COMMENT ON TYPE ledger.order_state IS 'Where an order is; docs/purchases.md says what leads from one to another';

CREATE TABLE ledger.purchase_order (
    order_id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    app_id             int NOT NULL REFERENCES ledger.app,
    customer_id        bigint NOT NULL REFERENCES ledger.customer,
    product_id         text NOT NULL,
    quantity           int NOT NULL,
    price_milliunits   bigint,
    currency           text,
    device             bytea,
    app_account_token  uuid NOT NULL DEFAULT gen_random_uuid(),
    sealed_key         bytea,
    state              ledger.order_state NOT NULL DEFAULT 'created',
    cause              text NOT NULL,
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL,
    changed_at         timestamptz NOT NULL,
    paid_at            timestamptz,
    environment        ledger.environment,
    transaction_id     text,
    purchase_id        bigint REFERENCES ledger.purchase,
    subscription_id    bigint REFERENCES ledger.subscription,
    period_id          bigint,
    CONSTRAINT purchase_order_token_unique UNIQUE (app_account_token),
    CONSTRAINT purchase_order_quantity_is_some CHECK (quantity BETWEEN 1 AND 10),
    CONSTRAINT purchase_order_price_has_currency CHECK ((price_milliunits IS NULL) = (currency IS NULL)),
    CONSTRAINT purchase_order_is_paid_by_one_thing CHECK (
        num_nonnulls(purchase_id, subscription_id) <= 1 AND (subscription_id IS NULL) = (period_id IS NULL)),
    CONSTRAINT purchase_order_paid_names_its_transaction CHECK (
        num_nonnulls(paid_at, environment, transaction_id) IN (0, 3)
        AND (paid_at IS NOT NULL) = (num_nonnulls(purchase_id, subscription_id) = 1)),
    CONSTRAINT purchase_order_state_fits CHECK (
        CASE WHEN state IN ('paid', 'refunded') THEN paid_at IS NOT NULL WHEN state = 'delivered' THEN true
             ELSE paid_at IS NULL END)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX purchase_order_paid_by_purchase ON ledger.purchase_order (purchase_id) WHERE purchase_id IS NOT NULL;
CREATE UNIQUE INDEX purchase_order_paid_by_period ON ledger.purchase_order (subscription_id, period_id)
    WHERE subscription_id IS NOT NULL;
CREATE INDEX purchase_order_of_customer ON ledger.purchase_order (customer_id, created_at, order_id);
CREATE INDEX purchase_order_open_of_customer ON ledger.purchase_order (customer_id)
    WHERE state IN ('created', 'purchasing', 'deferred');
CREATE INDEX purchase_order_open ON ledger.purchase_order (expires_at) WHERE state IN ('created', 'purchasing', 'deferred');
CREATE INDEX purchase_order_of_device ON ledger.purchase_order (device) WHERE device IS NOT NULL;
COMMENT ON TABLE ledger.purchase_order IS 'What a customer is about to buy, or bought';
COMMENT ON COLUMN ledger.purchase_order.price_milliunits IS 'The price that the customer was shown, in thousandths of currency';
COMMENT ON COLUMN ledger.purchase_order.device IS
    'A keyed hash of the device''s own id; equal ones tell customers who share an Apple account';
COMMENT ON COLUMN ledger.purchase_order.app_account_token IS
    'What the app passes to Apple with the purchase; a transaction that carries it pays this order';
COMMENT ON COLUMN ledger.purchase_order.sealed_key IS
    'The key of the order''s proofs, sealed with the master key; null: the customer was erased, and no proof is accepted';
COMMENT ON COLUMN ledger.purchase_order.cause IS 'What brought the state';
COMMENT ON COLUMN ledger.purchase_order.expires_at IS 'When the order expires if it is not paid';
COMMENT ON COLUMN ledger.purchase_order.paid_at IS 'Apple''s date of the transaction that pays it';
COMMENT ON COLUMN ledger.purchase_order.purchase_id IS 'The one-time purchase that pays it; or subscription_id and period_id';

CREATE TABLE ledger.order_change (
    order_id    uuid NOT NULL REFERENCES ledger.purchase_order,
    ordinal     int NOT NULL,
    state       ledger.order_state NOT NULL,
    cause       text NOT NULL,
    code        text,
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (order_id, ordinal),
    CONSTRAINT order_change_code_is_short CHECK (length(code) <= 255)
);
COMMENT ON TABLE ledger.order_change IS 'Every change of every order, with its cause. Rows are only added';
COMMENT ON COLUMN ledger.order_change.code IS 'What the device reported with the state, such as an error code of StoreKit';

CREATE TABLE ledger.order_request (
    app_id       int NOT NULL REFERENCES ledger.app,
    request_key  text NOT NULL,
    request      bytea NOT NULL,
    order_id     uuid NOT NULL REFERENCES ledger.purchase_order,
    state        ledger.order_state NOT NULL,
    expires_at   timestamptz NOT NULL,
    asked_at     timestamptz NOT NULL,
    PRIMARY KEY (app_id, request_key),
    CONSTRAINT order_request_key_is_short CHECK (request_key <> '' AND length(request_key) <= 255)
);
CREATE INDEX order_request_asked_at ON ledger.order_request (asked_at);
COMMENT ON TABLE ledger.order_request IS 'The Idempotency-Keys of the last 24 hours and the orders that they made';
COMMENT ON COLUMN ledger.order_request.request IS 'SHA-256 of what was asked: another request with the key is refused';
COMMENT ON COLUMN ledger.order_request.state IS 'The state that was answered; a repetition gets the same answer';
COMMENT ON COLUMN ledger.order_request.expires_at IS 'The end that was answered';

CREATE TABLE ledger.order_receipt (
    receipt_id  bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    order_id    uuid NOT NULL REFERENCES ledger.purchase_order,
    is_proved   boolean NOT NULL,
    is_new      boolean NOT NULL,
    sent_at     timestamptz NOT NULL,
    settled     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (receipt_id, order_id)
);
CREATE INDEX order_receipt_of_order ON ledger.order_receipt (order_id);
COMMENT ON TABLE ledger.order_receipt IS
    'Receipts that were sent for an order: what they hold may pay it, whenever Apple lists it';
COMMENT ON COLUMN ledger.order_receipt.is_proved IS
    'A device sent it with a proof; it may claim one transaction for the order''s customer. Else a service named the order';
COMMENT ON COLUMN ledger.order_receipt.is_new IS 'Whether the receipt was unknown before';
COMMENT ON COLUMN ledger.order_receipt.settled IS 'Whether a verified answer was settled since';

CREATE FUNCTION ledger.lock_buyer(app_id int, customer text) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    buyer bigint;
BEGIN
    LOOP
        SELECT COALESCE(c.merged_into, c.customer_id) INTO buyer FROM ledger.customer c
        WHERE c.app_id = lock_buyer.app_id AND c.name = lock_buyer.customer;
        EXIT WHEN FOUND;
        INSERT INTO ledger.customer (app_id, name) VALUES (lock_buyer.app_id, lock_buyer.customer)
        ON CONFLICT ON CONSTRAINT customer_name_unique DO NOTHING RETURNING customer_id INTO buyer;
        IF FOUND THEN
            RETURN buyer;
        END IF;
    END LOOP;
    PERFORM FROM ledger.customer c WHERE c.customer_id = buyer FOR NO KEY UPDATE;
    IF NOT EXISTS (
        SELECT FROM ledger.customer c
        WHERE c.app_id = lock_buyer.app_id AND c.name = lock_buyer.customer AND COALESCE(c.merged_into, c.customer_id) = buyer) THEN
        RAISE EXCEPTION 'the customer was merged, split or erased meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN buyer;
END $$;
COMMENT ON FUNCTION ledger.lock_buyer IS
    'The customer that a name means, made if it is new, and locked: one order of a customer is placed at a time';

CREATE FUNCTION ledger.place_order(
    bundle_id text, customer text, product_id text, quantity int, price_milliunits bigint, currency text, device bytea,
    request_key text, request bytea, order_id uuid, app_account_token uuid, sealed_key bytea, lasts interval,
    open_max int)
RETURNS TABLE (
    outcome text, placed_id uuid, placed_token uuid, placed_key bytea, placed_state ledger.order_state,
    placed_until timestamptz)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    app int;
    kind ledger.product_kind;
    buyer bigint;
    at timestamptz;
    known ledger.order_request;
BEGIN
    SELECT a.app_id INTO app FROM ledger.app a WHERE a.bundle_id = place_order.bundle_id AND a.removed_at IS NULL;
    SELECT p.kind INTO kind FROM ledger.product p WHERE p.app_id = app AND p.product_id = place_order.product_id;
    IF kind IS NULL THEN
        outcome := CASE WHEN app IS NULL THEN 'unknown_app' WHEN FOUND THEN 'without_kind' ELSE 'unknown_product' END;
        RETURN NEXT;
        RETURN;
    END IF;
    buyer := ledger.lock_buyer(app, place_order.customer);
    at := clock_timestamp();
    SELECT r.* INTO known FROM ledger.order_request r
    WHERE r.app_id = app AND r.request_key = place_order.request_key;
    IF known.asked_at > at - interval '24 hours' THEN
        RETURN QUERY
        SELECT CASE WHEN known.request = place_order.request THEN 'repeated' ELSE 'other_request' END, o.order_id,
               o.app_account_token, o.sealed_key, known.state, known.expires_at
        FROM ledger.purchase_order o WHERE o.order_id = known.order_id;
        RETURN;
    ELSIF known.asked_at IS NOT NULL THEN
        DELETE FROM ledger.order_request r WHERE r.app_id = app AND r.request_key = place_order.request_key;
    END IF;
    IF (SELECT count(*) FROM ledger.purchase_order o
        WHERE o.customer_id = buyer AND o.state IN ('created', 'purchasing', 'deferred')) >= place_order.open_max THEN
        outcome := 'too_many';
        RETURN NEXT;
        RETURN;
    END IF;
    outcome := 'placed';
    placed_id := place_order.order_id;
    placed_token := place_order.app_account_token;
    placed_key := place_order.sealed_key;
    placed_until := at + place_order.lasts;
    placed_state := 'created';
    IF kind = 'non_consumable' AND EXISTS (
        SELECT FROM ledger.ownership w JOIN ledger.purchase p USING (purchase_id)
        WHERE w.customer_id = buyer AND upper_inf(w.known) AND upper_inf(w.valid)
          AND p.product_id = place_order.product_id AND p.version > 0 AND p.revoked_at IS NULL) THEN
        placed_state := 'delivered';
    END IF;
    WITH placed AS (
        INSERT INTO ledger.purchase_order (
            order_id, app_id, customer_id, product_id, quantity, price_milliunits, currency, device, app_account_token,
            sealed_key, state, cause, created_at, expires_at, changed_at)
        VALUES (
            placed_id, app, buyer, place_order.product_id, place_order.quantity, place_order.price_milliunits,
            place_order.currency, place_order.device, placed_token, placed_key, placed_state,
            CASE placed_state WHEN 'created' THEN 'placed' ELSE 'already_owned' END, at, placed_until, at))
    INSERT INTO ledger.order_request (app_id, request_key, request, order_id, state, expires_at, asked_at)
    VALUES (app, place_order.request_key, place_order.request, placed_id, placed_state, placed_until, at);
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION ledger.place_order IS
    'Places an order, or returns the one that the same request placed within 24 hours (outcome repeated). The other '
    'outcomes change nothing: other_request, too_many, without_kind, unknown_product, unknown_app. A non-consumable that the customer '
    'owns is delivered already. Every step is found by index: a session keeps the plans that it made while the tables '
    'were empty';

CREATE FUNCTION ledger.account_token(token text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN token ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN token::uuid END
$$;
COMMENT ON FUNCTION ledger.account_token IS 'The UUID of an app_account_token; null where an app passed something else';

CREATE FUNCTION ledger.log_order() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO ledger.order_change (order_id, ordinal, state, cause, changed_at)
        VALUES (NEW.order_id, 1, NEW.state, NEW.cause, NEW.changed_at);
    ELSE
        INSERT INTO ledger.order_change (order_id, ordinal, state, cause, code, changed_at)
        SELECT NEW.order_id, max(c.ordinal) + 1, NEW.state, NEW.cause,
               NULLIF(current_setting('perennial.order_code', true), ''), NEW.changed_at
        FROM ledger.order_change c WHERE c.order_id = NEW.order_id;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION ledger.log_order IS
    'Adds a change of an order to the log. perennial.order_code holds what the device reported, if it did';
CREATE TRIGGER purchase_order_is_new AFTER INSERT ON ledger.purchase_order FOR EACH ROW EXECUTE FUNCTION ledger.log_order();
CREATE TRIGGER purchase_order_changes AFTER UPDATE OF state, cause ON ledger.purchase_order FOR EACH ROW
    WHEN ((OLD.state, OLD.cause) IS DISTINCT FROM (NEW.state, NEW.cause)) EXECUTE FUNCTION ledger.log_order();

-- OFFSET 0 keeps the planner to finding each step by index, whatever it takes to be rare.
CREATE FUNCTION ledger.find_payments(
    purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[], late interval)
RETURNS TABLE (
    order_id uuid, created_at timestamptz, cause text, environment ledger.environment, purchase_id bigint,
    subscription_id bigint, period_id bigint, purchased_at timestamptz, transaction_id text)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH owned AS MATERIALIZED (
        SELECT o.customer_id, o.purchase_id, o.subscription_id
        FROM unnest(find_payments.purchase_ids) AS n(id)
        CROSS JOIN LATERAL (
            SELECT o.* FROM ledger.ownership o
            WHERE o.purchase_id = n.id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
        UNION ALL
        SELECT o.customer_id, o.purchase_id, o.subscription_id
        FROM unnest(find_payments.subscription_ids) AS n(id)
        CROSS JOIN LATERAL (
            SELECT o.* FROM ledger.ownership o
            WHERE o.subscription_id = n.id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
    ), open AS MATERIALIZED (
        SELECT n.customer_id, r.order_id, r.product_id, r.created_at
        FROM (SELECT DISTINCT o.customer_id FROM owned o) n
        CROSS JOIN LATERAL (
            SELECT n.customer_id AS name_id
            UNION ALL
            SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = n.customer_id OFFSET 0) c
        CROSS JOIN LATERAL (
            SELECT r.* FROM ledger.purchase_order r
            WHERE r.customer_id = c.name_id AND r.state IN ('created', 'purchasing', 'deferred') OFFSET 0) r
    ), thing AS MATERIALIZED (
        SELECT o.customer_id, p.app_id, p.environment, p.product_id, p.purchase_id, NULL::bigint AS subscription_id,
               NULL::bigint AS period_id, p.transaction_id, p.purchased_at,
               ledger.account_token(p.app_account_token) AS token
        FROM owned o
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        WHERE p.version > 0 AND p.revoked_at IS NULL
        UNION ALL
        SELECT o.customer_id, s.app_id, s.environment, e.product_id, NULL, s.subscription_id, e.period_id, NULL,
               e.purchased_at, ledger.account_token(e.app_account_token)
        FROM owned o
        CROSS JOIN LATERAL (
            SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = o.subscription_id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT e.* FROM ledger.period e WHERE e.subscription_id = o.subscription_id OFFSET 0) e
        WHERE (e.cancelled_at IS NULL OR e.is_upgraded)
          AND (s.app_account_token IS NOT NULL OR o.customer_id IN (SELECT n.customer_id FROM open n)
               OR cardinality(find_payments.receipt_ids) > 0)
    ), untied AS MATERIALIZED (
        SELECT t.* FROM thing t
        WHERE NOT EXISTS (SELECT FROM ledger.purchase_order n WHERE n.app_account_token = t.token OFFSET 0)
          AND NOT EXISTS (
            SELECT FROM ledger.period b
            WHERE b.subscription_id = t.subscription_id AND b.expires_at = t.purchased_at OFFSET 0)
    ), candidate AS MATERIALIZED (
        SELECT t.*, r.order_id, 'token' AS cause
        FROM thing t
        CROSS JOIN LATERAL (
            SELECT r.order_id FROM ledger.purchase_order r
            WHERE r.app_account_token = t.token AND r.app_id = t.app_id AND r.product_id = t.product_id OFFSET 0) r
        UNION ALL
        SELECT t.*, r.order_id, CASE WHEN x.is_proved THEN 'proof' ELSE 'order' END
        FROM unnest(find_payments.receipt_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT x.* FROM ledger.order_receipt x WHERE x.receipt_id = n.id OFFSET 0) x
        CROSS JOIN LATERAL (
            SELECT r.order_id, r.app_id, r.product_id, r.created_at, COALESCE(c.merged_into, c.customer_id) AS buyer_id
            FROM ledger.purchase_order r JOIN ledger.customer c USING (customer_id)
            WHERE r.order_id = x.order_id AND r.paid_at IS NULL OFFSET 0) r
        JOIN untied t ON t.customer_id = r.buyer_id AND t.app_id = r.app_id AND t.product_id = r.product_id
         AND r.created_at <= t.purchased_at + find_payments.late
        WHERE EXISTS (
                SELECT FROM ledger.receipt_purchase l
                WHERE l.receipt_id = x.receipt_id AND l.purchase_id = t.purchase_id OFFSET 0)
           OR EXISTS (
                SELECT FROM ledger.receipt_subscription l
                WHERE l.receipt_id = x.receipt_id AND l.subscription_id = t.subscription_id OFFSET 0)
        UNION ALL
        SELECT t.*, r.order_id, 'product'
        FROM untied t
        JOIN open r ON r.customer_id = t.customer_id AND r.product_id = t.product_id
         AND r.created_at <= t.purchased_at + find_payments.late
    )
    SELECT r.order_id, r.created_at, c.cause, c.environment, c.purchase_id, c.subscription_id, c.period_id,
           c.purchased_at, COALESCE(c.transaction_id, (
               SELECT min(a.transaction_id COLLATE "C") FROM ledger.transaction_alias a WHERE a.period_id = c.period_id))
    FROM candidate c
    CROSS JOIN LATERAL (
        SELECT r.* FROM ledger.purchase_order r
        WHERE r.order_id = c.order_id AND r.paid_at IS NULL AND r.state <> 'delivered' FOR NO KEY UPDATE) r
    WHERE NOT EXISTS (SELECT FROM ledger.purchase_order n WHERE n.purchase_id = c.purchase_id OFFSET 0)
      AND NOT EXISTS (
        SELECT FROM ledger.purchase_order n
        WHERE n.subscription_id = c.subscription_id AND n.period_id = c.period_id OFFSET 0)
    ORDER BY r.order_id;
END $$;
COMMENT ON FUNCTION ledger.find_payments IS
    'Which unpaid orders one-time purchases and the periods of subscriptions may pay; it locks these orders. An account '
    'token names the order (cause token), and then no other. Else it is an order of the owner for the product, placed '
    'before the purchase or late after it: one for which a receipt among receipt_ids was sent with a proof or by name '
    '(proof, order), or an open one (product). A renewal, which begins where a period ended, pays only what its token '
    'names. What paid an order pays no other';

CREATE VIEW perennial.order_log AS
SELECT l.order_id::text AS order_id, a.bundle_id, head.name AS customer, o.product_id, o.quantity,
       o.environment::text AS environment, l.state::text AS state, l.cause, l.changed_at AS at
FROM ledger.order_change l
JOIN ledger.purchase_order o USING (order_id)
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);
COMMENT ON VIEW perennial.order_log IS 'Every change of every order; customer is the one that its name means now';
