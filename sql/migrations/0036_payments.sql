-- Payments: all orders and transactions of a customer and product are read together, so that one rule decides which pays
-- which, whatever came first. Programs of before still call find_payments; a later migration drops it.
ALTER TABLE ledger.order_receipt ADD COLUMN transaction_id text,
    ADD CONSTRAINT order_receipt_transaction_is_short CHECK (length(transaction_id) <= 64);
COMMENT ON COLUMN ledger.order_receipt.transaction_id IS
    'The transaction that the service named for the order; it decides alone if it was bought in time';
CREATE INDEX purchase_order_paid_of_customer ON ledger.purchase_order (customer_id) WHERE state = 'paid';

-- Every step is found by index: a session keeps the plans that it made while the tables were empty.
CREATE FUNCTION ledger.payable_orders(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
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
            SELECT r.order_id, r.product_id FROM ledger.purchase_order r
            WHERE r.customer_id = c.name_id AND r.state = 'paid' OFFSET 0) r
        WHERE r.product_id = c.product_id
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
    'receipt was sent for them or a token names them; of those the newest hundred';

CREATE FUNCTION ledger.lock_payable(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    payable uuid[] := ledger.payable_orders(purchase_ids, subscription_ids, receipt_ids);
BEGIN
    -- An acknowledgement locks what is due before its order, too.
    PERFORM FROM ledger.due_delivery q
    WHERE q.delivery_id = ANY(ARRAY(
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.purchase_id = ANY(purchase_ids)
        UNION ALL
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.subscription_id = ANY(subscription_ids)
        UNION ALL
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.order_id = ANY(payable)))
    ORDER BY q.delivery_id FOR NO KEY UPDATE;
    PERFORM FROM ledger.purchase_order o WHERE o.order_id = ANY(payable) ORDER BY o.order_id FOR NO KEY UPDATE;
    RETURN payable;
END $$;
COMMENT ON FUNCTION ledger.lock_payable IS
    'Locks the payable orders and what of them is due, so that one settlement at a time decides what pays them';

CREATE FUNCTION ledger.holds(receipt_id bigint, purchase_id bigint, subscription_id bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
            SELECT FROM ledger.receipt_purchase l
            WHERE l.receipt_id = holds.receipt_id AND l.purchase_id = holds.purchase_id)
        OR EXISTS (
            SELECT FROM ledger.receipt_subscription l
            WHERE l.receipt_id = holds.receipt_id AND l.subscription_id = holds.subscription_id)
$$;
COMMENT ON FUNCTION ledger.holds IS 'Whether a receipt holds a one-time purchase or a subscription';

CREATE FUNCTION ledger.paying_transactions(order_ids uuid[], late interval) RETURNS TABLE (
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
           COALESCE(given.is_given, false),
           COALESCE(given.is_twin, false) OR given.is_given IS NULL AND EXISTS (
               SELECT FROM ledger.delivery l
               CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
               WHERE l.customer_id = t.customer_id AND l.reason = 'purchase' AND l.product_id = t.product_id
                 AND l.skip_reason IS DISTINCT FROM 'claimed_by_order' AND p.environment = t.environment
                 AND p.purchased_at = t.purchased_at AND p.quantity = t.quantity AND p.purchase_id <> t.purchase_id
                 AND (lower(p.app_account_token) <> t.token) IS NOT TRUE),
           ARRAY(SELECT x.order_id::text FROM sent x
                 WHERE x.is_proved AND ledger.holds(x.receipt_id, t.purchase_id, t.subscription_id)),
           ARRAY(SELECT x.order_id::text FROM sent x
                 WHERE NOT x.is_proved AND ledger.holds(x.receipt_id, t.purchase_id, t.subscription_id)),
           ARRAY(SELECT x.order_id::text FROM sent x WHERE x.transaction_id = ANY(t.transaction_ids)),
           COALESCE((SELECT r.order_id FROM ledger.purchase_order r WHERE r.purchase_id = t.purchase_id OFFSET 0),
                    (SELECT r.order_id FROM ledger.purchase_order r
                     WHERE r.subscription_id = t.subscription_id AND r.period_id = t.period_id OFFSET 0)),
           t.is_revoked
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
            WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l) given;
END $$;
COMMENT ON FUNCTION ledger.paying_transactions IS
    'The transactions that may pay the orders: what their customers own of the products, bought at most late before the '
    'first of these orders or carrying a token of one. Apple did not take them back, unless they pay one of the orders '
    '(is_revoked), and no family member shares them. '
    'is_given: what it gives was acknowledged, or a person skipped it; is_duplicate: it is a possible duplicate of what '
    'was delivered';

CREATE FUNCTION ledger.tie_deliveries(purchase_ids bigint[], subscription_ids bigint[], period_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    given bigint[] := ARRAY(
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.purchase_id = ANY(purchase_ids)
        UNION ALL
        SELECT d.delivery_id
        FROM unnest(subscription_ids, period_ids) AS n(subscription_id, period_id)
        JOIN ledger.delivery d ON d.subscription_id = n.subscription_id AND d.period_id = n.period_id);
    orders uuid[];
BEGIN
    -- Every writer locks the queue before the deliveries.
    PERFORM FROM ledger.due_delivery q WHERE q.delivery_id = ANY(given) ORDER BY q.delivery_id FOR NO KEY UPDATE;
    WITH tied AS (
        UPDATE ledger.delivery d SET order_id = n.order_id
        FROM (
            SELECT d.delivery_id, o.order_id
            FROM ledger.delivery d
            CROSS JOIN LATERAL (
                SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id FROM ledger.customer c
                WHERE c.customer_id = d.customer_id OFFSET 0) c
            LEFT JOIN LATERAL (
                SELECT r.order_id, r.customer_id FROM ledger.purchase_order r WHERE r.purchase_id = d.purchase_id
                UNION ALL
                SELECT r.order_id, r.customer_id FROM ledger.purchase_order r
                WHERE r.subscription_id = d.subscription_id AND r.period_id = d.period_id) r ON true
            -- What was due to the one from whom a proof claims it is skipped, and pays nothing.
            LEFT JOIN LATERAL (
                SELECT r.order_id FROM ledger.customer b
                WHERE b.customer_id = r.customer_id AND COALESCE(b.merged_into, b.customer_id) = c.customer_id OFFSET 0) o
                ON true
            WHERE d.delivery_id = ANY(given)) n
        WHERE d.delivery_id = n.delivery_id AND d.order_id IS DISTINCT FROM n.order_id
        RETURNING d.delivery_id, d.order_id
    ), queued AS (
        UPDATE ledger.due_delivery q SET order_id = t.order_id FROM tied t WHERE q.delivery_id = t.delivery_id)
    SELECT array_agg(t.order_id) FILTER (WHERE t.order_id IS NOT NULL) INTO orders FROM tied t;
    IF orders IS NOT NULL THEN
        PERFORM ledger.advance_orders(orders);
    END IF;
END $$;
COMMENT ON FUNCTION ledger.tie_deliveries IS
    'Ties the deliveries of purchases and periods to the orders that these pay now, due or settled, and makes the orders '
    'delivered or refunded where they are settled. The caller has locked the orders';

CREATE FUNCTION ledger.orders_in_doubt(purchase_ids bigint[], subscription_ids bigint[])
RETURNS TABLE (order_id uuid, purchase_id bigint, subscription_id bigint, doubt text)
LANGUAGE sql STABLE AS $$
    SELECT o.order_id, o.purchase_id, o.subscription_id, trouble.doubt
    FROM (SELECT r.* FROM ledger.purchase_order r WHERE r.purchase_id = ANY(purchase_ids)
          UNION ALL
          SELECT r.* FROM ledger.purchase_order r WHERE r.subscription_id = ANY(subscription_ids)) o
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE d.order_id = o.order_id) AS tied,
               bool_or(d.skip_reason = 'possible_duplicate') AS is_twin,
               bool_or(d.order_id IS DISTINCT FROM o.order_id
                       AND COALESCE(d.skip_reason NOT IN ('claimed_by_order', 'erased'), true)) AS is_untied,
               (array_agg(d.turn % 2 ORDER BY d.turn DESC) 
                   FILTER (WHERE d.order_id = o.order_id AND d.state <> 'due'))[1] AS settled
        FROM (SELECT l.* FROM ledger.delivery_now l WHERE l.purchase_id = o.purchase_id
              UNION ALL
              SELECT l.* FROM ledger.delivery_now l
              WHERE l.subscription_id = o.subscription_id AND l.period_id = o.period_id) d
        OFFSET 0) given
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN given.is_twin AND o.cause <> 'token' THEN 'is paid by a possible duplicate, whose delivery was skipped'
            WHEN given.is_untied THEN 'is paid, and a delivery of its transaction does not name it'
            WHEN given.settled = 1 AND o.state <> 'delivered' THEN 'is not delivered, although what it gives was settled'
            WHEN given.settled = 0 AND o.state <> 'refunded' THEN 'is not refunded, although the take-back was settled'
            WHEN given.tied = 0 AND EXISTS (
                SELECT FROM ledger.deliverables(
                    array_remove(ARRAY[o.purchase_id], NULL), array_remove(ARRAY[o.subscription_id], NULL)) t
                WHERE t.period_id IS NOT DISTINCT FROM o.period_id AND t.is_wanted AND NOT t.is_taken_back
                  AND t.owner_id IS NOT NULL AND NOT EXISTS (
                    SELECT FROM ledger.delivery_release r
                    WHERE r.app_id = o.app_id AND r.product_id = t.product_id))
                THEN 'is paid and has no delivery, although the catalog delivers what pays it'
            END AS doubt OFFSET 0) trouble
    WHERE trouble.doubt IS NOT NULL
$$;
COMMENT ON FUNCTION ledger.orders_in_doubt IS
    'Orders paid by purchases and subscriptions that have no delivery although the catalog delivers what pays them, that a '
    'delivery does not name, whose state is not what was settled, or that a possible duplicate pays';

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
            SELECT unnest(b.untouched[1:b.open + b.placed - open_max])
            FROM (
                SELECT b.untouched, b.open, count(*) AS placed
                FROM room b JOIN asked n USING (buyer) JOIN remembered r ON r.order_id = n.order_id
                WHERE n.state = 'created'
                GROUP BY b.buyer, b.untouched, b.open) b
            -- As text, which keeps the index of open orders out: it looks as good while the table is empty.
            WHERE b.open + b.placed > open_max)) AND o.state::text = 'created'
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

-- No program that works with this schema calls these.
DROP FUNCTION ledger.place_order;
DROP FUNCTION ledger.lock_buyer;

-- Orders that a program of before paid after their delivery was made.
SELECT ledger.tie_deliveries(
    ARRAY(SELECT o.purchase_id FROM ledger.purchase_order o WHERE o.state = 'paid' AND o.purchase_id IS NOT NULL),
    ARRAY(SELECT o.subscription_id FROM ledger.purchase_order o
          WHERE o.state = 'paid' AND o.period_id IS NOT NULL ORDER BY o.order_id),
    ARRAY(SELECT o.period_id FROM ledger.purchase_order o
          WHERE o.state = 'paid' AND o.period_id IS NOT NULL ORDER BY o.order_id));
