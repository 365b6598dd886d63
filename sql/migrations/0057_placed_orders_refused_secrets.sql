-- Placing an order decides payments anew, so that it does not matter whether an order or its purchase is stored first; and
-- what a customer only points at is not owned. A refused secret that no receipt can prove stays visible.
CREATE FUNCTION ledger.lock_payable_with(order_ids uuid[], late interval) RETURNS uuid[]
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    purchase_ids bigint[];
    subscription_ids bigint[];
BEGIN
    WITH wanted AS MATERIALIZED (
        SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, r.product_id, min(r.created_at) - late AS since
        FROM unnest(order_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id OFFSET 0) r
        CROSS JOIN LATERAL (SELECT c.* FROM ledger.customer c WHERE c.customer_id = r.customer_id OFFSET 0) c
        WHERE r.state::text = 'created'
        GROUP BY 1, 2
    ), owned AS MATERIALIZED (
        SELECT o.customer_id, o.purchase_id, o.subscription_id
        FROM (SELECT DISTINCT w.customer_id FROM wanted w) w
        CROSS JOIN LATERAL (
            SELECT o.* FROM ledger.ownership o
            WHERE o.customer_id = w.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
    )
    SELECT array_agg(o.purchase_id) FILTER (WHERE o.purchase_id IS NOT NULL),
           array_agg(o.subscription_id) FILTER (WHERE o.subscription_id IS NOT NULL)
    INTO purchase_ids, subscription_ids
    FROM owned o
    WHERE EXISTS (
        SELECT FROM wanted w
        CROSS JOIN LATERAL (
            SELECT p.product_id, p.purchased_at FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id
            UNION ALL
            SELECT e.product_id, e.purchased_at FROM ledger.period e
            WHERE e.subscription_id = o.subscription_id OFFSET 0) b
        WHERE w.customer_id = o.customer_id AND b.product_id = w.product_id AND b.purchased_at >= w.since);
    IF purchase_ids IS NULL AND subscription_ids IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN ledger.lock_payable(COALESCE(purchase_ids, '{}'), COALESCE(subscription_ids, '{}'), '{}');
END $$;
COMMENT ON FUNCTION ledger.lock_payable_with IS
    'Locks the new orders that what their customers bought before may pay, at most late before them, and the payable orders '
    'of the same customers and products, as lock_payable does; none where nothing was bought. The caller has locked the '
    'customers, and so has each settlement that changes what they own';

CREATE OR REPLACE FUNCTION ledger.place_orders(
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
               CASE WHEN s.kind = 'non_consumable' AND EXISTS (
                   SELECT FROM ledger.ownership w
                   CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = w.purchase_id OFFSET 0) p
                   WHERE w.customer_id = s.buyer AND upper_inf(w.known) AND upper_inf(w.valid)
                     AND w.cause IS DISTINCT FROM 'pointer' AND p.product_id = n.product_id AND p.version > 0 AND p.revoked_at IS NULL) THEN 'delivered'
                    ELSE 'created' END::ledger.order_state AS state
        FROM unnest(places, app_ids, kinds, buyers) AS s(place, app_id, kind, buyer)
        JOIN unnest(
            product_ids, quantities, prices, currencies, devices, request_keys, requests, order_ids, app_account_tokens,
            sealed_keys) WITH ORDINALITY AS n(
            product_id, quantity, price, currency, device, request_key, request, order_id, app_account_token,
            sealed_key, place) ON n.place = s.place
    ), room AS MATERIALIZED (
        SELECT b.buyer, o.open, CASE WHEN o.open + b.asked > open_max THEN ARRAY(
                   SELECT o.order_id FROM ledger.purchase_order o
                   WHERE o.customer_id = b.buyer AND o.state = 'created'
                     AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.order_id = o.order_id OFFSET 0)
                   ORDER BY o.created_at, o.order_id) ELSE '{}' END AS untouched
        FROM (SELECT n.buyer, count(*) AS asked FROM asked n GROUP BY n.buyer) b
        CROSS JOIN LATERAL (
            SELECT count(*) AS open FROM ledger.purchase_order o
            WHERE o.customer_id = b.buyer AND o.state IN ('created', 'purchasing', 'deferred') OFFSET 0) o
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
    'non-consumable that the customer owns by more than a pointer is delivered already. Every step is found by index, because a session keeps '
    'the plans that it made while the tables were empty';

ALTER TABLE ledger.secret_trial
    ADD COLUMN refused_receipts bigint[] NOT NULL DEFAULT '{}',
    ADD COLUMN is_untold boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN ledger.secret_trial.refused_receipts IS
    'The first receipts that Apple refused since the last trial with a verdict, at most 100';
COMMENT ON COLUMN ledger.secret_trial.is_untold IS
    'Whether the last trial found no receipt that can tell whether Apple accepts the secret';
