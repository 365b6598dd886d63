-- Orders that arrive together are placed by one statement. Servers of the release before still call place_order; a later
-- migration drops it, with lock_buyer.
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
    FROM unnest(bundle_ids, product_ids) WITH ORDINALITY AS n(bundle_id, product_id, place)
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.kind FROM ledger.app a JOIN ledger.product p USING (app_id)
        WHERE a.bundle_id = n.bundle_id AND a.removed_at IS NULL AND p.product_id = n.product_id AND p.kind IS NOT NULL
        OFFSET 0) p;
    buyers := ledger.lock_buyers(app_ids, ARRAY(SELECT customers[i] FROM unnest(places) AS i));
    at := clock_timestamp();
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT s.app_id, s.buyer, n.*,
               CASE WHEN s.kind = 'non_consumable' AND EXISTS (
                   SELECT FROM ledger.ownership w
                   CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = w.purchase_id OFFSET 0) p
                   WHERE w.customer_id = s.buyer AND upper_inf(w.known) AND upper_inf(w.valid)
                     AND p.product_id = n.product_id AND p.version > 0 AND p.revoked_at IS NULL) THEN 'delivered'
                    ELSE 'created' END::ledger.order_state AS state,
               (SELECT count(*) FROM ledger.purchase_order o
                WHERE o.customer_id = s.buyer AND o.state IN ('created', 'purchasing', 'deferred')) AS open
        FROM unnest(places, app_ids, kinds, buyers) AS s(place, app_id, kind, buyer)
        JOIN unnest(
            product_ids, quantities, prices, currencies, devices, request_keys, requests, order_ids, app_account_tokens,
            sealed_keys) WITH ORDINALITY AS n(
            product_id, quantity, price, currency, device, request_key, request, order_id, app_account_token,
            sealed_key, place) ON n.place = s.place
    ), remembered AS (
        INSERT INTO ledger.order_request (app_id, request_key, request, order_id, state, expires_at, asked_at)
        SELECT n.app_id, n.request_key, n.request, n.order_id, n.state, at + lasts, at
        FROM (
            SELECT n.*, n.open + count(*) FILTER (WHERE n.state = 'created') OVER (
                PARTITION BY n.buyer ORDER BY n.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS open_before
            FROM asked n) n
        WHERE n.open_before < open_max
        ORDER BY n.app_id, n.request_key COLLATE "C"
        ON CONFLICT DO NOTHING
        RETURNING order_id
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
    'catalog does not sell, Idempotency-Keys that are known, and orders beyond open_max open ones of a customer. A '
    'non-consumable that the customer owns is delivered already. Every step is found by index, because a session keeps '
    'the plans that it made while the tables were empty';

-- One call of the trigger for all the orders of a statement.
DROP TRIGGER purchase_order_is_new ON ledger.purchase_order;
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
CREATE OR REPLACE FUNCTION ledger.log_order() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO ledger.order_change (order_id, ordinal, state, cause, code, changed_at)
    SELECT NEW.order_id, max(c.ordinal) + 1, NEW.state, NEW.cause,
           NULLIF(current_setting('perennial.order_code', true), ''), NEW.changed_at
    FROM ledger.order_change c WHERE c.order_id = NEW.order_id;
    RETURN NULL;
END $$;

-- Its condition differs from that of purchase_order_open_of_customer. With equal conditions both indexes cost the same
-- while PostgreSQL takes the table to be empty, and a session that plans then may walk all open orders for each new one.
DROP INDEX ledger.purchase_order_open;
CREATE INDEX purchase_order_open ON ledger.purchase_order (expires_at)
    WHERE state IN ('created', 'purchasing', 'deferred') AND expires_at IS NOT NULL;
