-- Only purchases without an account token are possible duplicates of each other. What one gave nothing of because it was
-- taken for one, is given when it turns out to be none.
CREATE INDEX delivery_duplicate ON ledger.delivery (customer_id, product_id) WHERE skip_reason = 'possible_duplicate';

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
                              AND COALESCE(l.skip_reason NOT IN ('claimed_by_order', 'possible_duplicate'), true)
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

CREATE OR REPLACE FUNCTION ledger.advance_orders(order_ids uuid[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE ledger.purchase_order o
    SET state = n.state, cause = n.cause, changed_at = clock_timestamp()
    FROM (
        SELECT i.id AS order_id, last.state::text AS cause,
               CASE WHEN last.turn % 2 = 1 THEN 'delivered' ELSE 'refunded' END::ledger.order_state AS state
        FROM (SELECT DISTINCT id FROM unnest(order_ids) AS i(id) ORDER BY id) i
        CROSS JOIN LATERAL (
            SELECT d.turn, d.state FROM ledger.delivery_now d
            WHERE d.order_id = i.id AND d.state <> 'due' AND d.skip_reason IS DISTINCT FROM 'possible_duplicate'
            ORDER BY d.turn DESC LIMIT 1) last) n
    WHERE o.order_id = n.order_id AND o.state <> n.state
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
              AND COALESCE(l.skip_reason NOT IN ('claimed_by_order', 'possible_duplicate'), true) OFFSET 0) l
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

COMMENT ON COLUMN ledger.delivery.skip_reason IS
    'family_shared: the purchase is another customer''s, a share or a seat; possible_duplicate: Apple listed the same '
    'purchase under another id, and neither had an account token; erased: the customer was erased; claimed_by_order: an '
    'order''s customer got it before it was given, or after it was skipped; or the words of the person who skipped it. The '
    'next odd turn gives what a possible_duplicate or claimed_by_order did not';
