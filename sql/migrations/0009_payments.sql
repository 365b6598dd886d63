-- Payments: all orders and transactions of a customer and product are read together, so that one rule decides which pays
-- which, whatever came first.

CREATE FUNCTION ledger.is_bought_singly(kind ledger.product_kind) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT kind IN ('non_consumable', 'auto_renewable')
$$;
COMMENT ON FUNCTION ledger.is_bought_singly IS 'Whether Apple sells one at a time of a kind, so that no quantity counts';

-- Every step is found by index: a session keeps the plans that it made while the tables were empty.
CREATE FUNCTION ledger.payable_orders(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN ARRAY(
        WITH paid AS MATERIALIZED (
            SELECT r.order_id
            FROM unnest(purchase_ids) AS n(id)
            CROSS JOIN LATERAL (
                SELECT r.order_id, r.state FROM ledger.purchase_order r WHERE r.purchase_id = n.id OFFSET 0) r
            WHERE r.state = 'paid'
            UNION ALL
            SELECT r.order_id
            FROM unnest(subscription_ids) AS n(id)
            CROSS JOIN LATERAL (
                SELECT r.order_id, r.state FROM ledger.purchase_order r WHERE r.subscription_id = n.id OFFSET 0) r
            WHERE r.state = 'paid'
        ), sold AS MATERIALIZED (
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
            -- Also of those whose orders are paid by what belongs to another customer now.
            SELECT COALESCE(c.merged_into, c.customer_id), r.product_id
            FROM (
                SELECT x.order_id FROM unnest(receipt_ids) AS n(id)
                CROSS JOIN LATERAL (SELECT x.order_id FROM ledger.order_receipt x WHERE x.receipt_id = n.id OFFSET 0) x
                UNION ALL
                SELECT paid.order_id FROM paid) x
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
        SELECT paid.order_id FROM paid
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
              AND r.product_id = c.product_id
              AND (r.state::text = 'delivered' AND r.paid_at IS NULL
                   OR r.state::text IN ('cancelled', 'failed', 'expired')
                  AND EXISTS (SELECT FROM ledger.order_receipt x WHERE x.order_id = r.order_id OFFSET 0))
            ORDER BY r.created_at DESC, r.order_id DESC LIMIT 100) r
        UNION
        SELECT r.order_id
        FROM token t
        CROSS JOIN LATERAL (
            SELECT r.* FROM ledger.purchase_order r WHERE r.app_account_token = t.token OFFSET 0) r
        WHERE r.state IN ('cancelled', 'failed', 'expired') OR r.state = 'delivered' AND r.paid_at IS NULL
        UNION
        SELECT r.order_id
        FROM unnest(receipt_ids) AS n(id)
        CROSS JOIN LATERAL (
            SELECT x.order_id FROM ledger.order_receipt x WHERE x.receipt_id = n.id
            ORDER BY x.sent_at DESC LIMIT 100) x
        CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = x.order_id OFFSET 0) r
        WHERE r.state IN ('cancelled', 'failed', 'expired') OR r.state = 'delivered' AND r.paid_at IS NULL);
END $$;
COMMENT ON FUNCTION ledger.payable_orders IS
    'The orders that purchases, the periods of subscriptions, and what receipts were sent for may pay, and those that are '
    'paid and not delivered, whose payment may move: of the same customers and products, and of the customers whose orders '
    'are paid by these. Orders that ended count where a receipt was sent for them or a token names them, and those for '
    'what was owned already always. Of those that ended and of those that are paid the newest hundred of a customer and '
    'product count';

-- An order whose transaction the caller named, and Apple does not list yet, waits for that one.
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

CREATE FUNCTION ledger.lock_payable(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
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

-- Placing an order decides payments anew, so that it does not matter whether an order or its purchase is stored first.
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
        WHERE r.paid_at IS NULL
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
        CROSS JOIN LATERAL (
            SELECT EXISTS (
                SELECT FROM ledger.purchase_order r
                WHERE r.purchase_id = p.purchase_id AND r.order_id = ANY(order_ids) OFFSET 0) AS pays OFFSET 0) x
        WHERE p.version > 0 AND NOT ledger.is_shared(p.facts #>> '{ownership,word}')
          -- What pays one of them may have turned out to be bought earlier.
          AND (p.purchased_at >= w.since OR ledger.account_token(p.app_account_token) = ANY(w.tokens) OR x.pays)
          AND (p.revoked_at IS NULL OR x.pays)
        UNION ALL
        SELECT s.app_id, NULL, s.subscription_id, e.period_id, s.environment, e.product_id, e.quantity, e.purchased_at,
               o.customer_id, o.cause,
               e.is_renewal,
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
        WHERE NOT ledger.is_shared(e.ownership)
          AND NOT ledger.is_moved(e.is_upgraded, e.cancellation_reason)
          AND (e.cancelled_at IS NULL OR e.is_upgraded OR EXISTS (
              SELECT FROM ledger.purchase_order r
              WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id
                AND r.order_id = ANY(order_ids) OFFSET 0))
    ), given AS MATERIALIZED (
        SELECT t.*, l.is_given, l.is_twin
        FROM thing t
        CROSS JOIN LATERAL (
            -- What was skipped for another customer was given to none.
            SELECT bool_or(CASE WHEN l.skip_reason IS NULL
                                THEN NOT EXISTS (
                                    SELECT FROM ledger.due_delivery q WHERE q.delivery_id = l.delivery_id OFFSET 0)
                                ELSE l.turn = l.last_turn AND NOT ledger.is_void(l.turn, l.skip_reason)
                                 AND ledger.is_same_customer(l.customer_id, t.customer_id) END) AS is_given,
                   COALESCE(bool_or(l.skip_reason = 'possible_duplicate' AND l.turn = l.last_turn), false) AS is_twin
            FROM (
                SELECT l.*, max(l.turn) OVER () AS last_turn
                FROM (
                    SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                    UNION ALL
                    SELECT l.* FROM ledger.delivery l
                    WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l) l) l
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
            WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token))
            ORDER BY c.name COLLATE "C" DESC LIMIT 1),
           CASE WHEN NOT t.is_twin THEN t.is_given END,
           t.token IS NULL AND (t.is_given IS NULL OR t.is_twin) AND EXISTS (
               SELECT FROM ledger.twins(t.purchase_id) AS w(id)
               WHERE EXISTS (
                        SELECT FROM ledger.delivery l
                        WHERE l.purchase_id = w.id AND l.reason = 'purchase'
                          AND l.skip_reason IS DISTINCT FROM 'possible_duplicate')
                  -- The first of both, which another customer owns, is delivered after payments are decided.
                  OR w.id < t.purchase_id
                     AND NOT EXISTS (SELECT FROM ledger.delivery l WHERE l.purchase_id = w.id)
                     AND EXISTS (
                        SELECT FROM ledger.deliverables(ARRAY[w.id], '{}') d
                        WHERE d.owner_id <> t.customer_id AND d.is_wanted)),
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
    'is_given: what it gives was acknowledged, or a person skipped it for its owner; null: nothing of it is due or given. '
    'is_duplicate: it is a possible duplicate of what was delivered';

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

CREATE FUNCTION ledger.may_be_paid(of_order uuid, late interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = of_order AND r.paid_at IS NULL OFFSET 0) r
        CROSS JOIN LATERAL (
            SELECT o.purchase_id, o.subscription_id FROM ledger.ownership o
            WHERE o.customer_id = r.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
        CROSS JOIN LATERAL (
            SELECT p.product_id, p.purchased_at FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id
            UNION ALL
            SELECT e.product_id, e.purchased_at FROM ledger.period e
            WHERE e.subscription_id = o.subscription_id OFFSET 0) b
        WHERE b.product_id = r.product_id AND b.purchased_at >= r.created_at - late);
END $$;
COMMENT ON FUNCTION ledger.may_be_paid IS
    'Whether the customer of an order that this transaction places owns something of its product that was bought at most '
    'late before it. Volatile, so that it sees the order';

CREATE FUNCTION ledger.awaits_release(of_app int, of_product text, of_purchase bigint, of_subscription bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM ledger.delivery_release r
        WHERE r.app_id = of_app AND r.product_id = of_product
          AND (of_purchase > r.after_purchase OR of_subscription > r.after_subscription))
$$;
COMMENT ON FUNCTION ledger.awaits_release IS
    'Whether workers go through what a catalog released of a product, and have yet to come to a purchase or subscription';

CREATE FUNCTION ledger.orders_in_doubt(purchase_ids bigint[], subscription_ids bigint[])
RETURNS TABLE (order_id uuid, purchase_id bigint, subscription_id bigint, doubt text)
LANGUAGE sql STABLE AS $$
    SELECT o.order_id, o.purchase_id, o.subscription_id, trouble.doubt
    FROM (SELECT r.* FROM ledger.purchase_order r WHERE r.purchase_id = ANY(purchase_ids)
          UNION ALL
          SELECT r.* FROM ledger.purchase_order r WHERE r.subscription_id = ANY(subscription_ids)) o
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE d.order_id = o.order_id) AS tied,
               bool_or(d.skip_reason = 'possible_duplicate' AND d.turn = d.last_turn) AS is_twin,
               -- What was taken back from another name, which was merged since, is no part of the order.
               bool_or(d.order_id IS DISTINCT FROM o.order_id AND d.turn % 2 = 1
                       AND NOT ledger.is_void(d.turn, d.skip_reason)
                       AND ledger.is_same_customer(d.customer_id, o.customer_id)) AS is_untied
        FROM (
            SELECT l.*, max(l.turn) OVER () AS last_turn
            FROM (SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = o.purchase_id
                  UNION ALL
                  SELECT l.* FROM ledger.delivery l
                  WHERE l.subscription_id = o.subscription_id AND l.period_id = o.period_id) l) d
        OFFSET 0) given
    LEFT JOIN LATERAL ledger.order_settled(o.order_id) settled ON true
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN o.state = 'paid' AND ledger.is_same_customer(
                    ledger.held_by(o.purchase_id, o.subscription_id, o.period_id), o.customer_id) IS NOT TRUE
                THEN 'is paid by what is another customer''s'
            WHEN given.is_twin THEN 'is paid by a possible duplicate, whose delivery was skipped'
            WHEN given.is_untied THEN 'is paid, and a delivery of its transaction does not name it'
            WHEN o.state <> COALESCE(settled.state, 'paid')
                THEN format('is %s, although its settled deliveries make it %s', o.state, COALESCE(settled.state, 'paid'))
            WHEN given.tied = 0 AND EXISTS (
                SELECT FROM ledger.deliverables(
                    array_remove(ARRAY[o.purchase_id], NULL), array_remove(ARRAY[o.subscription_id], NULL)) t
                WHERE t.period_id IS NOT DISTINCT FROM o.period_id AND t.is_wanted
                  AND t.owner_id IS NOT NULL
                  AND NOT ledger.awaits_release(o.app_id, t.product_id, o.purchase_id, o.subscription_id))
                THEN 'is paid and has no delivery, although the catalog delivers what pays it'
            END AS doubt OFFSET 0) trouble
    WHERE trouble.doubt IS NOT NULL
$$;
COMMENT ON FUNCTION ledger.orders_in_doubt IS
    'Orders paid by purchases and subscriptions that have no delivery although the catalog delivers what pays them, that a '
    'delivery does not name, whose state is not what was settled, or that a possible duplicate pays or what is another '
    'customer''s (ledger.held_by)';
