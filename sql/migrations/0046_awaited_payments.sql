-- An order whose transaction the caller named, and Apple does not list yet, waits for that one; what may pay orders is
-- locked before them; what is bought singly is ordered singly.
ALTER TABLE ledger.order_receipt ADD COLUMN is_naming boolean NOT NULL DEFAULT false;
UPDATE ledger.order_receipt SET is_naming = true WHERE transaction_id IS NOT NULL;
COMMENT ON COLUMN ledger.order_receipt.is_naming IS 'Whether the last upload of the receipt for the order named transaction_id';

CREATE FUNCTION ledger.awaited_transaction(of_order uuid) RETURNS text
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    named text := (
        SELECT x.transaction_id
        FROM (SELECT x.transaction_id, x.is_naming FROM ledger.order_receipt x
              WHERE x.order_id = of_order ORDER BY x.sent_at DESC, x.receipt_id DESC LIMIT 1) x
        WHERE x.is_naming);
    app int := (SELECT o.app_id FROM ledger.purchase_order o WHERE o.order_id = of_order);
BEGIN
    RETURN CASE WHEN NOT EXISTS (
            SELECT FROM ledger.purchase p
            WHERE p.app_id = app AND p.environment = ANY(enum_range(NULL::ledger.environment))
              AND p.original_transaction_id = named AND p.version > 0)
        AND NOT EXISTS (
            SELECT FROM ledger.transaction_alias a
            CROSS JOIN LATERAL (
                SELECT e.subscription_id FROM ledger.period e WHERE e.period_id = a.period_id OFFSET 0) e
            CROSS JOIN LATERAL (
                SELECT s.app_id FROM ledger.subscription s WHERE s.subscription_id = e.subscription_id OFFSET 0) s
            WHERE a.transaction_id = named AND s.app_id = app)
        -- A restored copy has an id of its own.
        AND NOT EXISTS (
            SELECT FROM ledger.order_receipt x
            CROSS JOIN LATERAL (
                SELECT l.purchase_id FROM ledger.receipt_purchase l WHERE l.receipt_id = x.receipt_id OFFSET 0) l
            CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
            WHERE x.order_id = of_order AND named = ANY(p.transaction_ids) AND p.version > 0)
        THEN named END;
END $$;
COMMENT ON FUNCTION ledger.awaited_transaction IS
    'The transaction that the last upload for an order named, where no answer of Apple listed it yet';

CREATE FUNCTION ledger.is_bought_singly(kind ledger.product_kind) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT kind IN ('non_consumable', 'auto_renewable')
$$;
COMMENT ON FUNCTION ledger.is_bought_singly IS 'Whether Apple sells one at a time of a kind, so that no quantity counts';

CREATE OR REPLACE FUNCTION ledger.payable_orders(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN ARRAY(
        WITH sold AS MATERIALIZED (
            SELECT o.customer_id, p.product_id
            FROM unnest(purchase_ids) AS n(id)
            CROSS JOIN LATERAL (
                SELECT o.customer_id FROM ledger.ownership o
                WHERE o.purchase_id = n.id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
            CROSS JOIN LATERAL (SELECT p.product_id FROM ledger.purchase p WHERE p.purchase_id = n.id OFFSET 0) p
            UNION
            SELECT o.customer_id, e.product_id
            FROM unnest(subscription_ids) AS n(id)
            CROSS JOIN LATERAL (
                SELECT o.customer_id FROM ledger.ownership o
                WHERE o.subscription_id = n.id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
            CROSS JOIN LATERAL (
                SELECT DISTINCT e.product_id FROM ledger.period e WHERE e.subscription_id = n.id OFFSET 0) e
            UNION
            SELECT COALESCE(c.merged_into, c.customer_id), r.product_id
            FROM unnest(receipt_ids) AS n(id)
            CROSS JOIN LATERAL (SELECT x.order_id FROM ledger.order_receipt x WHERE x.receipt_id = n.id OFFSET 0) x
            CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = x.order_id OFFSET 0) r
            CROSS JOIN LATERAL (SELECT c.* FROM ledger.customer c WHERE c.customer_id = r.customer_id OFFSET 0) c
        ), called AS MATERIALIZED (
            SELECT n.customer_id AS name_id, s.product_id
            FROM sold s
            CROSS JOIN LATERAL (
                SELECT s.customer_id
                UNION ALL
                SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = s.customer_id OFFSET 0) n
        ), token AS MATERIALIZED (
            SELECT ledger.account_token(p.app_account_token) AS token
            FROM unnest(purchase_ids) AS n(id)
            CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = n.id OFFSET 0) p
            WHERE p.app_account_token IS NOT NULL
            UNION
            SELECT ledger.account_token(e.app_account_token)
            FROM unnest(subscription_ids) AS n(id)
            CROSS JOIN LATERAL (
                SELECT DISTINCT e.app_account_token FROM ledger.period e
                WHERE e.subscription_id = n.id AND e.app_account_token IS NOT NULL OFFSET 0) e
        )
        SELECT r.order_id
        FROM called c
        CROSS JOIN LATERAL (
            SELECT r.order_id, r.product_id FROM ledger.purchase_order r
            WHERE r.customer_id = c.name_id AND r.state IN ('created', 'purchasing', 'deferred') OFFSET 0) r
        WHERE r.product_id = c.product_id
        UNION
        SELECT r.order_id
        FROM called c
        CROSS JOIN LATERAL (
            -- The newest hundred, of what was paid and is not delivered, too.
            SELECT r.order_id
            FROM (SELECT r.* FROM ledger.purchase_order r
                  WHERE r.customer_id = c.name_id AND r.state = 'paid' OFFSET 0) r
            WHERE r.product_id = c.product_id
            ORDER BY r.created_at DESC, r.order_id DESC LIMIT 100) r
        UNION
        SELECT r.order_id
        FROM called c
        CROSS JOIN LATERAL (
            -- The newest hundred, so that one customer's many orders cost others nothing.
            SELECT r.order_id FROM ledger.purchase_order r
            WHERE r.customer_id = c.name_id AND r.created_at > now() - interval '90 days'
              AND r.product_id = c.product_id AND r.state::text IN ('cancelled', 'failed', 'expired')
              AND EXISTS (SELECT FROM ledger.order_receipt x WHERE x.order_id = r.order_id OFFSET 0)
            ORDER BY r.created_at DESC, r.order_id DESC LIMIT 100) r
        UNION
        SELECT r.order_id
        FROM token t
        CROSS JOIN LATERAL (
            SELECT r.order_id, r.state FROM ledger.purchase_order r WHERE r.app_account_token = t.token OFFSET 0) r
        WHERE r.state IN ('cancelled', 'failed', 'expired')
        UNION
        SELECT r.order_id
        FROM unnest(receipt_ids) AS n(id)
        CROSS JOIN LATERAL (
            SELECT x.order_id FROM ledger.order_receipt x WHERE x.receipt_id = n.id
            ORDER BY x.sent_at DESC LIMIT 100) x
        CROSS JOIN LATERAL (
            SELECT r.order_id, r.state FROM ledger.purchase_order r WHERE r.order_id = x.order_id OFFSET 0) r
        WHERE r.state IN ('cancelled', 'failed', 'expired'));
END $$;
COMMENT ON FUNCTION ledger.payable_orders IS
    'The orders that purchases, the periods of subscriptions, and what receipts were sent for may pay, and those that are '
    'paid and not delivered, whose payment may move: of the same customers and products. Orders that ended count where a '
    'receipt was sent for them or a token names them. Of those that ended and of those that are paid the newest hundred of '
    'a customer and product count';

CREATE OR REPLACE FUNCTION ledger.lock_payable(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    payable uuid[] := ledger.payable_orders(purchase_ids, subscription_ids, receipt_ids);
BEGIN
    -- An acknowledgement locks what is due before its order, too. So all that may pay the orders is locked before them.
    PERFORM FROM ledger.due_delivery q
    WHERE q.delivery_id = ANY(ARRAY(
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.purchase_id = ANY(purchase_ids)
        UNION ALL
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.subscription_id = ANY(subscription_ids)
        UNION ALL
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.order_id = ANY(payable)
        UNION ALL
        SELECT d.delivery_id
        FROM (
            SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, array_agg(DISTINCT r.product_id) AS products
            FROM unnest(payable) AS n(id)
            CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id OFFSET 0) r
            CROSS JOIN LATERAL (SELECT c.* FROM ledger.customer c WHERE c.customer_id = r.customer_id OFFSET 0) c
            GROUP BY 1) w
        CROSS JOIN LATERAL (
            SELECT o.purchase_id, o.subscription_id FROM ledger.ownership o
            WHERE o.customer_id = w.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
        CROSS JOIN LATERAL (
            SELECT d.delivery_id, d.product_id FROM ledger.delivery d WHERE d.purchase_id = o.purchase_id
            UNION ALL
            SELECT d.delivery_id, d.product_id FROM ledger.delivery d
            WHERE d.subscription_id = o.subscription_id) d
        WHERE d.product_id = ANY(w.products)))
    ORDER BY q.delivery_id FOR NO KEY UPDATE;
    PERFORM FROM ledger.purchase_order o WHERE o.order_id = ANY(payable) ORDER BY o.order_id FOR NO KEY UPDATE;
    RETURN payable;
END $$;
COMMENT ON FUNCTION ledger.lock_payable IS
    'Locks what is due of all that may pay the payable orders, then these, so that one settlement at a time decides what '
    'pays them';

CREATE OR REPLACE FUNCTION ledger.paying_transactions(order_ids uuid[], late interval) RETURNS TABLE (
    purchase_id bigint, subscription_id bigint, period_id bigint, environment ledger.environment, product_id text,
    quantity int, purchased_at timestamptz, owner_id bigint, is_claimed boolean, is_renewal boolean,
    transaction_ids text[], account_token text, token_order uuid, token_customer bigint, is_given boolean,
    is_duplicate boolean, proved_for text[], sent_for text[], named_for text[], pays uuid, is_revoked boolean)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, r.product_id,
               min(r.created_at) - paying_transactions.late AS since, array_agg(r.app_account_token) AS tokens
        FROM unnest(order_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id OFFSET 0) r
        CROSS JOIN LATERAL (SELECT c.* FROM ledger.customer c WHERE c.customer_id = r.customer_id OFFSET 0) c
        GROUP BY 1, 2
    ), owned AS MATERIALIZED (
        SELECT o.customer_id, o.purchase_id, o.subscription_id, o.cause
        FROM (SELECT DISTINCT w.customer_id FROM wanted w) w
        CROSS JOIN LATERAL (
            SELECT o.* FROM ledger.ownership o
            WHERE o.customer_id = w.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
    ), thing AS MATERIALIZED (
        SELECT p.app_id, p.purchase_id, NULL::bigint AS subscription_id, NULL::bigint AS period_id, p.environment,
               p.product_id, p.quantity, p.purchased_at, o.customer_id, o.cause, false AS is_renewal, p.transaction_ids,
               lower(p.app_account_token) AS token, p.revoked_at IS NOT NULL AS is_revoked
        FROM owned o
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        JOIN wanted w ON w.customer_id = o.customer_id AND w.product_id = p.product_id
         AND (p.purchased_at >= w.since OR ledger.account_token(p.app_account_token) = ANY(w.tokens))
        WHERE p.version > 0 AND p.facts #>> '{ownership,word}' IS DISTINCT FROM 'FAMILY_SHARED'
          AND (p.revoked_at IS NULL OR EXISTS (
              SELECT FROM ledger.purchase_order r
              WHERE r.purchase_id = p.purchase_id AND r.order_id = ANY(order_ids) OFFSET 0))
        UNION ALL
        SELECT s.app_id, NULL, s.subscription_id, e.period_id, s.environment, e.product_id, e.quantity, e.purchased_at,
               o.customer_id, o.cause,
               EXISTS (
                   SELECT FROM ledger.period b
                   WHERE b.subscription_id = e.subscription_id AND b.expires_at = e.purchased_at OFFSET 0),
               ARRAY(SELECT a.transaction_id FROM ledger.transaction_alias a WHERE a.period_id = e.period_id
                     ORDER BY a.transaction_id COLLATE "C"),
               lower(e.app_account_token), e.cancelled_at IS NOT NULL AND NOT e.is_upgraded
        FROM owned o
        CROSS JOIN LATERAL (
            SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = o.subscription_id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT e.* FROM ledger.period e WHERE e.subscription_id = s.subscription_id OFFSET 0) e
        JOIN wanted w ON w.customer_id = o.customer_id AND w.product_id = e.product_id
         AND (e.purchased_at >= w.since OR ledger.account_token(e.app_account_token) = ANY(w.tokens))
        WHERE e.ownership IS DISTINCT FROM 'FAMILY_SHARED'
          AND (e.is_upgraded AND e.cancellation_reason LIKE 'moved to %') IS NOT TRUE
          AND (e.cancelled_at IS NULL OR e.is_upgraded OR EXISTS (
              SELECT FROM ledger.purchase_order r
              WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id
                AND r.order_id = ANY(order_ids) OFFSET 0))
    ), given AS MATERIALIZED (
        SELECT t.*, l.is_given, l.is_twin
        FROM thing t
        CROSS JOIN LATERAL (
            SELECT bool_or(l.skip_reason IS NULL AND NOT EXISTS (
                               SELECT FROM ledger.due_delivery q WHERE q.delivery_id = l.delivery_id OFFSET 0)
                           OR COALESCE(l.skip_reason NOT IN ('claimed_by_order', 'possible_duplicate'), false)) AS is_given,
                   bool_or(l.skip_reason = 'possible_duplicate') AS is_twin
            FROM (
                SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                UNION ALL
                SELECT l.* FROM ledger.delivery l
                WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l) l
    ), twin AS MATERIALIZED (
        -- What was delivered is read once, not once for each transaction.
        SELECT w.customer_id, p.environment, p.product_id, p.purchased_at, p.quantity, p.purchase_id,
               lower(p.app_account_token) AS token
        FROM (SELECT DISTINCT w.customer_id FROM wanted w) w
        CROSS JOIN LATERAL (
            SELECT l.purchase_id FROM ledger.delivery l
            WHERE l.customer_id = w.customer_id AND l.reason = 'purchase'
              AND l.skip_reason IS DISTINCT FROM 'claimed_by_order' OFFSET 0) l
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
        WHERE p.purchased_at = ANY(ARRAY(SELECT g.purchased_at FROM given g WHERE g.is_given IS NULL))
    ), sent AS MATERIALIZED (
        SELECT x.order_id, x.receipt_id, x.is_proved, x.transaction_id
        FROM unnest(order_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT x.* FROM ledger.order_receipt x WHERE x.order_id = n.id OFFSET 0) x
    )
    SELECT t.purchase_id, t.subscription_id, t.period_id, t.environment, t.product_id, t.quantity, t.purchased_at,
           t.customer_id, t.cause IS NOT DISTINCT FROM 'proof', t.is_renewal, t.transaction_ids, t.token,
           (SELECT n.order_id FROM ledger.purchase_order n
            WHERE n.app_account_token = ledger.account_token(t.token) AND n.app_id = t.app_id OFFSET 0),
           (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
            WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token)) LIMIT 1),
           COALESCE(t.is_given, false),
           COALESCE(t.is_twin, false) OR t.is_given IS NULL AND EXISTS (
               SELECT FROM twin o
               WHERE o.customer_id = t.customer_id AND o.environment = t.environment AND o.product_id = t.product_id
                 AND o.purchased_at = t.purchased_at AND o.quantity = t.quantity AND o.purchase_id <> t.purchase_id
                 AND (o.token <> t.token) IS NOT TRUE),
           COALESCE(held.proved, '{}'), COALESCE(held.named, '{}'),
           ARRAY(SELECT x.order_id::text FROM sent x WHERE x.transaction_id = ANY(t.transaction_ids)),
           COALESCE((SELECT r.order_id FROM ledger.purchase_order r WHERE r.purchase_id = t.purchase_id OFFSET 0),
                    (SELECT r.order_id FROM ledger.purchase_order r
                     WHERE r.subscription_id = t.subscription_id AND r.period_id = t.period_id OFFSET 0)),
           t.is_revoked
    FROM given t
    CROSS JOIN LATERAL (
        SELECT array_agg(x.order_id::text) FILTER (WHERE x.is_proved) AS proved,
               array_agg(x.order_id::text) FILTER (WHERE NOT x.is_proved) AS named
        FROM sent x WHERE ledger.holds(x.receipt_id, t.purchase_id, t.subscription_id)) held;
END $$;
COMMENT ON FUNCTION ledger.paying_transactions IS
    'The transactions that may pay the orders: what their customers own of the products, bought at most late before the '
    'first of these orders or carrying a token of one. Apple did not take them back, unless they pay one of the orders '
    '(is_revoked), and no family member shares them. '
    'is_given: what it gives was acknowledged, or a person skipped it; is_duplicate: it is a possible duplicate of what '
    'was delivered';

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
                     AND p.product_id = n.product_id AND p.version > 0 AND p.revoked_at IS NULL) THEN 'delivered'
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
    'non-consumable that the customer owns is delivered already. Every step is found by index, because a session keeps '
    'the plans that it made while the tables were empty';
