-- Orders: what customers are about to buy, from the tap to the delivery.

CREATE TYPE ledger.order_state AS ENUM (
    'created', 'purchasing', 'deferred', 'paid', 'delivered', 'cancelled', 'failed', 'expired', 'refunded');
COMMENT ON TYPE ledger.order_state IS 'Where an order is; docs/purchases.md says what leads from one to another';

CREATE FUNCTION ledger.account_token(token text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN token ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN token::uuid END
$$;
COMMENT ON FUNCTION ledger.account_token IS 'The UUID of an app_account_token; null where an app passed something else';

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
CREATE INDEX purchase_order_of_device ON ledger.purchase_order (device) WHERE device IS NOT NULL;
CREATE INDEX purchase_order_open ON ledger.purchase_order (expires_at)
    WHERE state IN ('created', 'purchasing', 'deferred') AND expires_at IS NOT NULL;
CREATE INDEX purchase_order_paid_of_customer ON ledger.purchase_order (customer_id) WHERE state = 'paid';
CREATE INDEX purchase_order_owned_of_customer ON ledger.purchase_order (customer_id)
    WHERE state = 'delivered' AND paid_at IS NULL;
COMMENT ON TABLE ledger.purchase_order IS 'What a customer is about to buy, or bought';
COMMENT ON COLUMN ledger.purchase_order.price_milliunits IS
    'The price that the customer was shown, in thousandths of currency';
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
    receipt_id      bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    order_id        uuid NOT NULL REFERENCES ledger.purchase_order,
    is_proved       boolean NOT NULL,
    is_new          boolean NOT NULL,
    transaction_id  text,
    is_naming       boolean NOT NULL DEFAULT false,
    sent_at         timestamptz NOT NULL,
    settled         boolean NOT NULL DEFAULT false,
    PRIMARY KEY (receipt_id, order_id),
    CONSTRAINT order_receipt_transaction_is_short CHECK (length(transaction_id) <= 64)
);
CREATE INDEX order_receipt_of_order ON ledger.order_receipt (order_id);
COMMENT ON TABLE ledger.order_receipt IS
    'Receipts that were sent for an order: what they hold may pay it, whenever Apple lists it';
COMMENT ON COLUMN ledger.order_receipt.is_proved IS
    'A device sent it with a proof; it may claim one transaction for the order''s customer. Else a service named the order';
COMMENT ON COLUMN ledger.order_receipt.is_new IS 'Whether the receipt was unknown before';
COMMENT ON COLUMN ledger.order_receipt.transaction_id IS
    'The transaction that the service named for the order; it decides alone if it was bought in time';
COMMENT ON COLUMN ledger.order_receipt.is_naming IS
    'Whether the last upload of the receipt for the order named transaction_id';
COMMENT ON COLUMN ledger.order_receipt.settled IS 'Whether a verified answer was settled since';

CREATE FUNCTION ledger.owned_for_order(of_customer bigint, of_product text, of_order uuid) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN ARRAY(
        SELECT p.purchase_id FROM ledger.ownership w
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = w.purchase_id OFFSET 0) p
        WHERE w.customer_id = of_customer AND upper_inf(w.known) AND upper_inf(w.valid)
          AND w.cause IS DISTINCT FROM 'pointer' AND p.product_id = of_product AND p.version > 0
          AND p.revoked_at IS NULL AND NOT ledger.is_shared(p.facts #>> '{ownership,word}')
          AND (p.environment = 'Production' OR EXISTS (
              SELECT FROM ledger.order_receipt x
              JOIN ledger.receipt_purchase l ON l.receipt_id = x.receipt_id AND l.purchase_id = p.purchase_id
              WHERE x.order_id = of_order OFFSET 0)));
END $$;
COMMENT ON FUNCTION ledger.owned_for_order IS
    'What a customer owns of a product, so that an order needs no payment: by more than a pointer, bought and neither shared '
    'nor taken back. What was bought in the Sandbox counts where a receipt that holds it was sent for the order';

CREATE FUNCTION ledger.log_order() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO ledger.order_change (order_id, ordinal, state, cause, code, changed_at)
    SELECT NEW.order_id, max(c.ordinal) + 1, NEW.state, NEW.cause,
           NULLIF(current_setting('perennial.order_code', true), ''),
           GREATEST(NEW.changed_at, max(c.changed_at) + interval '1 microsecond')
    FROM ledger.order_change c WHERE c.order_id = NEW.order_id;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION ledger.log_order IS
    'Adds a change of an order to the log, later than the change before, so that time sorts them. perennial.order_code holds '
    'what the device reported, if it did';

CREATE TRIGGER purchase_order_changes AFTER UPDATE OF state, cause ON ledger.purchase_order FOR EACH ROW
    WHEN ((OLD.state, OLD.cause) IS DISTINCT FROM (NEW.state, NEW.cause)) EXECUTE FUNCTION ledger.log_order();

CREATE FUNCTION ledger.log_new_orders() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.order_change (order_id, ordinal, state, cause, changed_at)
    SELECT n.order_id, 1, n.state, n.cause, n.changed_at FROM new_row n;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION ledger.log_new_orders IS 'Adds the first state of new orders to the log';

CREATE TRIGGER purchase_orders_are_new AFTER INSERT ON ledger.purchase_order
    REFERENCING NEW TABLE AS new_row FOR EACH STATEMENT EXECUTE FUNCTION ledger.log_new_orders();

CREATE FUNCTION ledger.lock_buyers(app_ids int[], customers text[]) RETURNS bigint[]
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    locked bigint[];
    meant bigint[];
    some_are_new boolean;
BEGIN
    LOOP
        SELECT array_agg(c.head_id ORDER BY n.place), bool_or(c.head_id IS NULL) INTO meant, some_are_new
        FROM unnest(app_ids, customers) WITH ORDINALITY AS n(app_id, name, place)
        LEFT JOIN LATERAL (
            SELECT COALESCE(c.merged_into, c.customer_id) AS head_id FROM ledger.customer c
            WHERE c.app_id = n.app_id AND c.name = n.name OFFSET 0) c ON true;
        IF some_are_new THEN
            INSERT INTO ledger.customer (app_id, name)
            SELECT n.app_id, n.name
            FROM (SELECT DISTINCT n.app_id, n.name FROM unnest(app_ids, customers, meant) AS n(app_id, name, customer_id)
                  WHERE n.customer_id IS NULL) n
            ORDER BY n.app_id, n.name COLLATE "C"
            ON CONFLICT ON CONSTRAINT customer_name_unique DO NOTHING;
            CONTINUE;
        END IF;
        -- A merge, a split or an erasure may have changed what a name means while this waited for the lock.
        EXIT WHEN meant IS NOT DISTINCT FROM locked;
        PERFORM FROM ledger.customer c WHERE c.customer_id = ANY(meant) ORDER BY c.customer_id FOR NO KEY UPDATE;
        locked := meant;
    END LOOP;
    RETURN locked;
END $$;
COMMENT ON FUNCTION ledger.lock_buyers IS
    'The customers that names mean, made where they are new, and locked: one statement at a time places orders of a customer';

CREATE FUNCTION ledger.place_orders(
    bundle_ids text[], customers text[], product_ids text[], quantities int[], prices bigint[], currencies text[],
    devices bytea[], request_keys text[], requests bytea[], order_ids uuid[], app_account_tokens uuid[], sealed_keys bytea[],
    lasts interval, open_max int)
RETURNS TABLE (order_id uuid, state ledger.order_state, expires_at timestamptz)
-- An order whose customer is locked for long does not keep the orders of others waiting.
LANGUAGE plpgsql SET lock_timeout = '2s' SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    places bigint[];
    app_ids int[];
    kinds ledger.product_kind[];
    buyers bigint[];
    at timestamptz;
BEGIN
    SELECT array_agg(n.place ORDER BY n.place), array_agg(p.app_id ORDER BY n.place), array_agg(p.kind ORDER BY n.place)
    INTO places, app_ids, kinds
    FROM unnest(bundle_ids, product_ids, quantities) WITH ORDINALITY AS n(bundle_id, product_id, quantity, place)
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.kind FROM ledger.app a JOIN ledger.product p USING (app_id)
        WHERE a.bundle_id = n.bundle_id AND a.removed_at IS NULL AND p.product_id = n.product_id AND p.kind IS NOT NULL
        OFFSET 0) p
    WHERE n.quantity = 1 OR NOT ledger.is_bought_singly(p.kind);
    buyers := ledger.lock_buyers(app_ids, ARRAY(SELECT customers[i] FROM unnest(places) AS i));
    at := clock_timestamp();
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT s.app_id, s.buyer, n.*,
               CASE WHEN s.kind = 'non_consumable' AND ledger.owned_for_order(s.buyer, n.product_id, n.order_id) <> '{}'
                    THEN 'delivered' ELSE 'created' END::ledger.order_state AS state
        FROM unnest(places, app_ids, kinds, buyers) AS s(place, app_id, kind, buyer)
        JOIN unnest(
            product_ids, quantities, prices, currencies, devices, request_keys, requests, order_ids, app_account_tokens,
            sealed_keys) WITH ORDINALITY AS n(
            product_id, quantity, price, currency, device, request_key, request, order_id, app_account_token,
            sealed_key, place) ON n.place = s.place
    ), room AS MATERIALIZED (
        SELECT b.buyer, o.open, CASE WHEN o.open + b.asked > open_max THEN ARRAY(
                   SELECT o.order_id FROM ledger.purchase_order o
                   WHERE o.customer_id = ANY(b.names) AND o.state = 'created'
                     AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.order_id = o.order_id OFFSET 0)
                   ORDER BY o.created_at, o.order_id) ELSE '{}' END AS untouched
        FROM (
            SELECT n.buyer, count(*) AS asked,
                   ARRAY(SELECT n.buyer
                         UNION ALL
                         SELECT m.customer_id FROM ledger.customer m WHERE m.merged_into = n.buyer) AS names
            FROM asked n GROUP BY n.buyer OFFSET 0) b
        CROSS JOIN LATERAL (
            SELECT count(*) AS open FROM ledger.purchase_order o
            WHERE o.customer_id = ANY(b.names) AND o.state IN ('created', 'purchasing', 'deferred') OFFSET 0) o
    ), remembered AS (
        INSERT INTO ledger.order_request (app_id, request_key, request, order_id, state, expires_at, asked_at)
        SELECT n.app_id, n.request_key, n.request, n.order_id, n.state, at + lasts, at
        FROM (
            SELECT n.*, count(*) FILTER (WHERE n.state = 'created') OVER (
                PARTITION BY n.buyer ORDER BY n.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier
            FROM asked n) n
        JOIN room b USING (buyer)
        WHERE n.state <> 'created'
           OR n.earlier < LEAST(open_max, open_max - b.open + cardinality(b.untouched))
        ORDER BY n.app_id, n.request_key COLLATE "C"
        ON CONFLICT DO NOTHING
        RETURNING order_id
    ), gave_way AS (
        UPDATE ledger.purchase_order o SET state = 'cancelled', cause = 'gave_way', changed_at = at
        WHERE o.order_id = ANY(ARRAY(
            -- Every writer locks orders by their ids.
            SELECT l.order_id FROM ledger.purchase_order l
            WHERE l.order_id = ANY(ARRAY(
                SELECT unnest(b.untouched[1:b.open + b.placed - open_max])
                FROM (
                    SELECT b.untouched, b.open, count(*) AS placed
                    FROM room b JOIN asked n USING (buyer) JOIN remembered r ON r.order_id = n.order_id
                    WHERE n.state = 'created'
                    GROUP BY b.buyer, b.untouched, b.open) b
                -- As text, which keeps the index of open orders out: it looks as good while the table is empty.
                WHERE b.open + b.placed > open_max)) AND l.state::text = 'created'
            ORDER BY l.order_id FOR NO KEY UPDATE))
    )
    INSERT INTO ledger.purchase_order (
        order_id, app_id, customer_id, product_id, quantity, price_milliunits, currency, device, app_account_token,
        sealed_key, state, cause, created_at, expires_at, changed_at)
    SELECT n.order_id, n.app_id, n.buyer, n.product_id, n.quantity, n.price, n.currency, n.device, n.app_account_token,
           n.sealed_key, n.state, CASE n.state WHEN 'created' THEN 'placed' ELSE 'already_owned' END, at, at + lasts, at
    FROM remembered r JOIN asked n USING (order_id)
    RETURNING order_id, state, expires_at;
END $$;
COMMENT ON FUNCTION ledger.place_orders IS
    'Places orders, one for each place in the arrays, and returns those that it placed. It leaves out products that the '
    'catalog does not sell, Idempotency-Keys that are known, and orders beyond open_max open ones of a customer where no '
    'untouched one gives way: the oldest that no device reported on and no receipt was sent for is cancelled. A '
    'non-consumable that the customer owns (ledger.owned_for_order) is delivered already. Every step is found by '
    'index, because a session keeps '
    'the plans that it made while the tables were empty';

CREATE TYPE ledger.delivery_state AS ENUM ('due', 'acknowledged', 'skipped');
COMMENT ON TYPE ledger.delivery_state IS
    'due: the operator''s service is to carry it out; acknowledged: it did; skipped: nothing is to be done';

-- What is due is in one narrow table, and one row acknowledges many deliveries. So an acknowledgement changes no row of
-- ledger.delivery, and costs what leaving the queue costs. As with events, what is delivered has the foreign key of the app.
CREATE TABLE ledger.delivery (
    delivery_id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position                 bigint,
    app_id                   int NOT NULL,
    environment              ledger.environment NOT NULL,
    customer_id              bigint NOT NULL REFERENCES ledger.customer,
    product_id               text NOT NULL,
    kind                     ledger.product_kind NOT NULL,
    credit                   text,
    units                    bigint,
    turn                     int NOT NULL,
    reason                   text NOT NULL,
    order_id                 uuid REFERENCES ledger.purchase_order,
    purchase_id              bigint REFERENCES ledger.purchase,
    subscription_id          bigint REFERENCES ledger.subscription,
    period_id                bigint,
    transaction_id           text NOT NULL,
    original_transaction_id  text NOT NULL,
    created_at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    skip_reason              text,
    skipped_at               timestamptz,
    skipped_by               text,
    CONSTRAINT delivery_is_of_one_thing CHECK (
        num_nonnulls(purchase_id, subscription_id) = 1 AND (subscription_id IS NULL) = (period_id IS NULL)),
    CONSTRAINT delivery_turn_is_counted_from_one CHECK (turn > 0),
    CONSTRAINT delivery_reason_fits_turn CHECK (
        CASE turn % 2 WHEN 1 THEN reason IN ('purchase', 'renewal', 'refund_reversed', 'transfer')
             ELSE reason IN ('refund', 'transfer') END),
    CONSTRAINT delivery_credit_of_consumable CHECK (
        CASE kind WHEN 'consumable' THEN num_nulls(credit, units) = 0 ELSE num_nonnulls(credit, units) = 0 END),
    CONSTRAINT delivery_skip_is_whole CHECK (num_nulls(skipped_at, skipped_by, skip_reason) IN (0, 3))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- No index has a column that changes when a delivery is settled, so that settling writes no index.
CREATE UNIQUE INDEX delivery_turn_of_purchase ON ledger.delivery (purchase_id, turn) WHERE purchase_id IS NOT NULL;
CREATE UNIQUE INDEX delivery_turn_of_period ON ledger.delivery (subscription_id, period_id, turn)
    WHERE subscription_id IS NOT NULL;
CREATE INDEX delivery_unplaced ON ledger.delivery (delivery_id) WHERE position IS NULL;
CREATE UNIQUE INDEX delivery_of_app ON ledger.delivery (app_id, environment, position) WHERE position IS NOT NULL;
CREATE INDEX delivery_of_customer ON ledger.delivery (customer_id, position);
CREATE INDEX delivery_of_order ON ledger.delivery (order_id) WHERE order_id IS NOT NULL;
COMMENT ON TABLE ledger.delivery IS
    'What a purchase or a period gives: odd turns give, even turns take back. A turn appears only after the turn before '
    'it was acknowledged or skipped. One-time purchases have purchase_id, periods subscription_id and period_id, which '
    'stays when a period turns out to be another one';
COMMENT ON COLUMN ledger.delivery.position IS
    'The place in the queue, from 1 without a gap, given after the commit; null: not yet';
COMMENT ON COLUMN ledger.delivery.customer_id IS
    'Whose it is; a merge and a split move it with the purchase. Who owns a purchase later gets another turn';
COMMENT ON COLUMN ledger.delivery.units IS
    'Units of the credit that it gives or takes back: the catalog''s times the quantity';
COMMENT ON COLUMN ledger.delivery.skip_reason IS
    'family_shared: the purchase is another customer''s, a share or a seat; possible_duplicate: Apple listed the same '
    'purchase under another id, and neither had an account token; erased: the customer was erased; claimed_by_order: an '
    'order''s customer got it before it was given, or after it was skipped; or the words of the person who skipped it. The '
    'next odd turn gives what a possible_duplicate or claimed_by_order did not';
COMMENT ON COLUMN ledger.delivery.skipped_at IS 'When it was skipped; null: it is due or acknowledged';
COMMENT ON COLUMN ledger.delivery.skipped_by IS 'The person or rule that did it';

CREATE TABLE ledger.due_delivery (
    delivery_id    bigint PRIMARY KEY,
    app_id         int NOT NULL,
    environment    ledger.environment NOT NULL,
    position       bigint,
    order_id       uuid,
    changed_since  boolean NOT NULL DEFAULT true
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- Deliveries that have no position yet come last.
CREATE UNIQUE INDEX due_delivery_queue ON ledger.due_delivery (app_id, environment, position);
COMMENT ON TABLE ledger.due_delivery IS
    'The due deliveries: the queue that services read. A delivery that left it was acknowledged or skipped';
COMMENT ON COLUMN ledger.due_delivery.position IS 'The place in the queue, given after the commit; null: not yet';
COMMENT ON COLUMN ledger.due_delivery.order_id IS 'The order that changes when the delivery is settled; null: none';
COMMENT ON COLUMN ledger.due_delivery.changed_since IS
    'What it delivers may have changed since: the next turn is looked for when it is acknowledged or skipped';

CREATE TABLE ledger.delivery_queue (
    is_only   boolean PRIMARY KEY DEFAULT true,
    position  bigint NOT NULL DEFAULT 0,
    CONSTRAINT delivery_queue_is_one CHECK (is_only)
);
COMMENT ON TABLE ledger.delivery_queue IS 'The last position in the queue of deliveries';
INSERT INTO ledger.delivery_queue DEFAULT VALUES;

CREATE TABLE ledger.delivery_release (
    app_id              int NOT NULL,
    product_id          text NOT NULL,
    after_purchase      bigint,
    after_subscription  bigint,
    PRIMARY KEY (app_id, product_id)
);
COMMENT ON TABLE ledger.delivery_release IS
    'Products whose earlier purchases a catalog released. Workers go through these, and delete the row at the end';
COMMENT ON COLUMN ledger.delivery_release.after_purchase IS 'Purchases up to this one are done; null: all are';
COMMENT ON COLUMN ledger.delivery_release.after_subscription IS 'Subscriptions up to this one are done; null: all are';

CREATE TABLE ledger.acknowledgement (
    hundred          bigint NOT NULL,
    delivery_ids     bigint[] NOT NULL,
    acknowledged_at  timestamptz NOT NULL,
    acknowledged_by  text NOT NULL,
    CONSTRAINT acknowledgement_is_of_a_delivery CHECK (cardinality(delivery_ids) > 0)
);
CREATE INDEX acknowledgement_of_hundred ON ledger.acknowledgement (hundred);
COMMENT ON TABLE ledger.acknowledgement IS
    'Which deliveries were carried out: a row for each call and hundred of delivery numbers. A delivery is in one row';
COMMENT ON COLUMN ledger.acknowledgement.hundred IS 'The numbers of the deliveries, divided by 100';
COMMENT ON COLUMN ledger.acknowledgement.acknowledged_by IS 'The API key or person that made the call';

CREATE VIEW ledger.delivery_now AS
SELECT d.delivery_id, d.position, d.app_id, d.environment, d.customer_id, d.product_id, d.kind, d.credit, d.units, d.turn,
       d.reason, d.order_id, d.purchase_id, d.subscription_id, d.period_id, d.transaction_id, d.original_transaction_id,
       CASE WHEN d.skip_reason IS NOT NULL THEN 'skipped'
            WHEN EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id OFFSET 0) THEN 'due'
            ELSE 'acknowledged' END::ledger.delivery_state AS state,
       d.created_at, COALESCE(d.skipped_at, (
           SELECT min(k.acknowledged_at) FROM ledger.acknowledgement k
           WHERE k.hundred = d.delivery_id / 100 AND d.delivery_id = ANY(k.delivery_ids))) AS settled_at,
       COALESCE(d.skipped_by, (
           SELECT min(k.acknowledged_by) FROM ledger.acknowledgement k
           WHERE k.hundred = d.delivery_id / 100 AND d.delivery_id = ANY(k.delivery_ids))) AS settled_by,
       d.skip_reason
FROM ledger.delivery d;
COMMENT ON VIEW ledger.delivery_now IS
    'Deliveries with their state: skipped where there is a reason, due where they are in the queue, else acknowledged';

CREATE FUNCTION ledger.is_void(turn int, skip_reason text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT COALESCE(
        skip_reason IN ('claimed_by_order', 'possible_duplicate') OR skip_reason = 'erased' AND turn % 2 = 1, false)
$$;
COMMENT ON FUNCTION ledger.is_void IS
    'Whether a turn was skipped so that the next odd turn gives what it did not: nothing was given or taken back by it';

CREATE FUNCTION ledger.order_settled(of_order uuid) RETURNS TABLE (state ledger.order_state, cause text)
LANGUAGE sql STABLE AS $$
    SELECT CASE d.turn % 2 WHEN 1 THEN 'delivered' ELSE 'refunded' END::ledger.order_state, d.state::text
    FROM ledger.delivery_now d
    WHERE d.order_id = of_order AND d.state <> 'due' AND NOT ledger.is_void(d.turn, d.skip_reason)
    ORDER BY d.turn DESC LIMIT 1
$$;
COMMENT ON FUNCTION ledger.order_settled IS
    'What an order that is paid is by its deliveries, and why: delivered where the last turn that was settled gave, '
    'refunded where it took back; no row where none is settled. A turn that is void settles nothing';
