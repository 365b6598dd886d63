-- What a customer was given pays no order of another one, also where that one owns it now. What belongs to another
-- customer by a token, a proof or a person pays the former owner's orders no more, and the orders of both are decided together.
CREATE FUNCTION ledger.is_same_customer(one bigint, other bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT one = other
        OR (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.customer_id = one)
         = (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.customer_id = other)
$$;
COMMENT ON FUNCTION ledger.is_same_customer IS 'Whether two names are one customer now; null where one of them is null';

CREATE FUNCTION ledger.given_to(of_purchase bigint, of_subscription bigint, of_period bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN l.turn % 2 = 0 OR NOT EXISTS (
                        SELECT FROM ledger.due_delivery q WHERE q.delivery_id = l.delivery_id OFFSET 0)
                    THEN (SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
                          WHERE c.customer_id = l.customer_id) END
        FROM (
            SELECT l.delivery_id, l.turn, l.customer_id, l.skip_reason FROM ledger.delivery l
            WHERE l.purchase_id = of_purchase
            UNION ALL
            SELECT l.delivery_id, l.turn, l.customer_id, l.skip_reason FROM ledger.delivery l
            WHERE l.subscription_id = of_subscription AND l.period_id = of_period) l
        WHERE l.skip_reason IS NULL
        ORDER BY l.turn DESC LIMIT 1);
END $$;
COMMENT ON FUNCTION ledger.given_to IS
    'The customer, as the name means now, who was given a one-time purchase or a period: of its last turn that was not '
    'skipped, unless that one is still to give it; null: none';

CREATE OR REPLACE FUNCTION ledger.payable_orders(purchase_ids bigint[], subscription_ids bigint[], receipt_ids bigint[]) RETURNS uuid[]
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
    'paid and not delivered, whose payment may move: of the same customers and products, and of the customers whose orders '
    'are paid by these. Orders that ended count where a receipt was sent for them or a token names them. Of those that '
    'ended and of those that are paid the newest hundred of a customer and product count';

CREATE OR REPLACE FUNCTION ledger.store_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
    turns bigint;
BEGIN
    PERFORM ledger.mark_due(purchase_ids, subscription_ids);
    WITH stored AS (
        INSERT INTO ledger.delivery (
            app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, order_id, purchase_id,
            subscription_id, period_id, transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
        SELECT (n.thing).app_id, (n.thing).environment, n.customer_id, (n.thing).product_id, n.kind, n.credit, n.units,
               n.turn, n.reason, o.order_id, (n.thing).purchase_id, (n.thing).subscription_id, (n.thing).period_id,
               COALESCE((n.thing).transaction_id, (
                   SELECT min(a.transaction_id COLLATE "C") FROM ledger.transaction_alias a
                   WHERE a.period_id = (n.thing).period_id)), (n.thing).original_transaction_id,
               CASE WHEN n.skip_reason IS NOT NULL THEN clock_timestamp() END,
               CASE WHEN n.skip_reason IS NOT NULL THEN 'perennial' END, n.skip_reason
        FROM ledger.next_turns(purchase_ids, subscription_ids) n
        LEFT JOIN LATERAL (
            SELECT r.order_id
            FROM (SELECT o.order_id, o.customer_id FROM ledger.purchase_order o
                  WHERE o.purchase_id = (n.thing).purchase_id
                  UNION ALL
                  SELECT o.order_id, o.customer_id FROM ledger.purchase_order o
                  WHERE o.subscription_id = (n.thing).subscription_id AND o.period_id = (n.thing).period_id) r
            -- What another customer gets is not of the order.
            WHERE ledger.is_same_customer(r.customer_id, n.customer_id)) o ON true
        ORDER BY (n.thing).purchase_id, (n.thing).subscription_id, (n.thing).purchased_at, (n.thing).period_id
        -- Two acknowledgements may need the same turn.
        ON CONFLICT DO NOTHING
        RETURNING delivery_id, app_id, environment, order_id, turn, skip_reason
    ), queued AS (
        INSERT INTO ledger.due_delivery (delivery_id, app_id, environment, order_id, changed_since)
        SELECT s.delivery_id, s.app_id, s.environment, s.order_id, s.turn > 1 FROM stored s WHERE s.skip_reason IS NULL)
    SELECT count(*) INTO turns FROM stored;
    RETURN turns;
END $$;

CREATE OR REPLACE FUNCTION ledger.orders_in_doubt(purchase_ids bigint[], subscription_ids bigint[])
RETURNS TABLE (order_id uuid, purchase_id bigint, subscription_id bigint, doubt text)
LANGUAGE sql STABLE AS $$
    SELECT o.order_id, o.purchase_id, o.subscription_id, trouble.doubt
    FROM (SELECT r.* FROM ledger.purchase_order r WHERE r.purchase_id = ANY(purchase_ids)
          UNION ALL
          SELECT r.* FROM ledger.purchase_order r WHERE r.subscription_id = ANY(subscription_ids)) o
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE d.order_id = o.order_id) AS tied,
               bool_or(d.skip_reason = 'possible_duplicate' AND d.turn > d.passed) AS is_twin,
               bool_or(d.order_id IS DISTINCT FROM o.order_id AND d.turn > d.passed
                       AND ledger.is_same_customer(d.customer_id, o.customer_id)
                       AND COALESCE(d.skip_reason NOT IN ('claimed_by_order', 'erased'), true)) AS is_untied,
               (array_agg(d.turn % 2 ORDER BY d.turn DESC)
                   FILTER (WHERE d.order_id = o.order_id AND d.state <> 'due' AND d.turn > d.passed))[1] AS settled
        FROM (
            -- The turns up to one that was skipped so that the next one gives it gave nothing.
            SELECT l.*, COALESCE(max(l.turn) FILTER (
                       WHERE l.turn % 2 = 0 AND l.skip_reason IN ('claimed_by_order', 'possible_duplicate')) OVER (), 0)
                       AS passed
            FROM (SELECT l.* FROM ledger.delivery_now l WHERE l.purchase_id = o.purchase_id
                  UNION ALL
                  SELECT l.* FROM ledger.delivery_now l
                  WHERE l.subscription_id = o.subscription_id AND l.period_id = o.period_id) l) d
        OFFSET 0) given
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN o.state = 'paid' AND given.tied = 0
             AND NOT ledger.is_same_customer(ledger.given_to(o.purchase_id, o.subscription_id, o.period_id), o.customer_id)
                THEN 'is paid by what another customer was given'
            WHEN given.is_twin THEN 'is paid by a possible duplicate, whose delivery was skipped'
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
    'delivery does not name, whose state is not what was settled, or that a possible duplicate pays or what another customer '
    'was given';

-- A possible duplicate stays one where the other purchase moved to another customer before it was given.
CREATE OR REPLACE FUNCTION ledger.next_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS TABLE (
    thing ledger.deliverable, customer_id bigint, kind ledger.product_kind, credit text, units bigint, turn int,
    reason text, skip_reason text)
LANGUAGE sql STABLE AS $$
    WITH thing AS MATERIALIZED (
        SELECT t AS thing, t.*, last.turn AS last_turn, last.reason AS last_reason, last.customer_id AS last_customer,
               last.kind AS last_kind, last.credit AS last_credit, last.units AS last_units, last.is_erased,
               last.turn % 2 = 1 AND last.skip_reason = 'possible_duplicate' AS was_duplicate,
               CASE WHEN last.delivery_id IS NOT NULL AND last.skip_reason IS NULL
                    THEN NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = last.delivery_id OFFSET 0)
                    END AS is_acknowledged,
               -- Nothing is left to take back of an erased customer, and the new owner does not wait for it.
               last.reason = 'transfer' AND last.turn % 2 = 0 AND last.skip_reason = 'erased' AS is_given_up
        FROM ledger.deliverables(purchase_ids, subscription_ids) t
        LEFT JOIN LATERAL (
            SELECT l.delivery_id, l.turn, l.reason, l.skip_reason, l.customer_id, l.kind, l.credit, l.units,
                   (SELECT c.erased_at IS NOT NULL FROM ledger.customer c WHERE c.customer_id = l.customer_id) AS is_erased
            FROM (
                SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                UNION ALL
                SELECT l.* FROM ledger.delivery l
                WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l
            ORDER BY l.turn DESC LIMIT 1) last ON true
    ), first AS (
        SELECT t.*, (SELECT p.app_account_token IS NULL FROM ledger.purchase p WHERE p.purchase_id = t.purchase_id) AS is_bare
        FROM thing t
        WHERE (t.last_turn IS NULL OR t.was_duplicate AND t.owner_id = t.last_customer)
          AND t.is_wanted AND NOT t.is_taken_back AND t.owner_id IS NOT NULL
    ), given AS (
        SELECT f.*,
               CASE WHEN f.is_family_shared THEN 'family_shared'
                    WHEN f.is_bare AND (
                        EXISTS (
                            SELECT FROM first o
                            WHERE o.is_bare AND o.purchase_id < f.purchase_id AND o.owner_id = f.owner_id
                              AND o.environment = f.environment AND o.product_id = f.product_id
                              AND o.purchased_at = f.purchased_at AND o.quantity = f.quantity)
                        OR EXISTS (
                            SELECT FROM ledger.delivery l
                            CROSS JOIN LATERAL (
                                SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
                            WHERE l.customer_id = f.owner_id AND l.reason = 'purchase' AND l.product_id = f.product_id
                              AND l.skip_reason IS DISTINCT FROM 'possible_duplicate'
                              AND p.app_account_token IS NULL AND p.environment = f.environment
                              AND p.purchased_at = f.purchased_at AND p.quantity = f.quantity
                              AND p.purchase_id <> f.purchase_id))
                    THEN 'possible_duplicate' END AS why
        FROM first f
    )
    SELECT f.thing, f.owner_id, f.kind, f.credit, f.units, 1, f.reason, f.why FROM given f WHERE f.last_turn IS NULL
    UNION ALL
    -- It is no duplicate any more: its token, or that of the other one, was learnt.
    SELECT f.thing, f.owner_id, f.last_kind, f.last_credit, f.last_units, f.last_turn + n.later,
           CASE n.later WHEN 1 THEN 'transfer' ELSE f.reason END, CASE n.later WHEN 1 THEN 'possible_duplicate' END
    FROM given f CROSS JOIN generate_series(1, 2) AS n(later)
    WHERE f.was_duplicate AND f.why IS NULL
    UNION ALL
    SELECT t.thing, turn.customer_id, t.last_kind, t.last_credit,
           -- A part of the price that Apple gave back takes the same part of the units back, at least one.
           CASE WHEN turn.reason = 'refund' AND t.refund_percentage < 100000 AND t.last_units IS NOT NULL
                THEN GREATEST(1, round(t.last_units * t.refund_percentage / 100000.0))::bigint
                ELSE t.last_units END,
           t.last_turn + 1, turn.reason,
           CASE WHEN t.is_erased AND turn.customer_id = t.last_customer THEN 'erased' END
    FROM thing t
    CROSS JOIN LATERAL (
        SELECT CASE WHEN t.is_taken_back THEN 'refund'
                    WHEN t.last_kind = 'non_consumable' AND t.owner_id <> t.last_customer AND NOT t.is_erased
                    THEN 'transfer' END AS reason, t.last_customer AS customer_id
        WHERE t.last_turn % 2 = 1
        UNION ALL
        SELECT CASE WHEN t.last_reason = 'refund' THEN 'refund_reversed' ELSE 'transfer' END,
               CASE WHEN t.last_kind = 'non_consumable' THEN t.owner_id ELSE t.last_customer END
        WHERE t.last_turn % 2 = 0 AND NOT t.is_taken_back) turn
    WHERE (t.is_acknowledged OR t.is_given_up) AND turn.reason IS NOT NULL AND turn.customer_id IS NOT NULL
$$;

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
        WHERE p.version > 0 AND NOT ledger.is_shared(p.facts #>> '{ownership,word}')
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
        WHERE NOT ledger.is_shared(e.ownership)
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
                           OR COALESCE(l.skip_reason NOT IN ('claimed_by_order', 'possible_duplicate'), false)
                              AND l.turn = l.last_turn) AS is_given,
                   bool_or(l.skip_reason = 'possible_duplicate' AND l.turn = l.last_turn) AS is_twin
            FROM (
                SELECT l.*, max(l.turn) OVER () AS last_turn
                FROM (
                    SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                    UNION ALL
                    SELECT l.* FROM ledger.delivery l
                    WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l) l) l
    ), twin AS MATERIALIZED (
        -- What was delivered is read once, not once for each transaction.
        SELECT w.customer_id, p.environment, p.product_id, p.purchased_at, p.quantity, p.purchase_id
        FROM (SELECT DISTINCT w.customer_id FROM wanted w) w
        CROSS JOIN LATERAL (
            SELECT l.purchase_id FROM ledger.delivery l
            WHERE l.customer_id = w.customer_id AND l.reason = 'purchase'
              AND l.skip_reason IS DISTINCT FROM 'possible_duplicate' OFFSET 0) l
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
        WHERE p.app_account_token IS NULL AND p.purchased_at = ANY(ARRAY(
            SELECT g.purchased_at FROM given g WHERE g.token IS NULL AND (g.is_given IS NULL OR g.is_twin)))
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
           t.token IS NULL AND (t.is_given IS NULL OR t.is_twin) AND EXISTS (
               SELECT FROM twin o
               WHERE o.customer_id = t.customer_id AND o.environment = t.environment AND o.product_id = t.product_id
                 AND o.purchased_at = t.purchased_at AND o.quantity = t.quantity AND o.purchase_id <> t.purchase_id),
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

CREATE FUNCTION ledger.may_be_paid(of_order uuid, late interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = of_order AND r.state::text = 'created' OFFSET 0) r
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
