-- Deliveries: what each purchase and each period gives, once, and what is taken back.

CREATE TYPE ledger.deliverable AS (
    app_id                   int,
    environment              ledger.environment,
    owner_id                 bigint,
    product_id               text,
    kind                     ledger.product_kind,
    credit                   text,
    units                    bigint,
    quantity                 int,
    purchased_at             timestamptz,
    is_wanted                boolean,
    is_taken_back            boolean,
    is_family_shared         boolean,
    reason                   text,
    purchase_id              bigint,
    subscription_id          bigint,
    period_id                bigint,
    transaction_id           text,
    original_transaction_id  text,
    refund_percentage        int
);
COMMENT ON TYPE ledger.deliverable IS
    'A purchase or a period as deliveries see it. is_wanted: the catalog delivers it, and Apple left something of it; '
    'is_taken_back: Apple refunded or revoked it, or a part of it, or it turned out to be another period; '
    'refund_percentage: how much of the price Apple gave back, in thousandths of a percent, null where no answer shows it';

-- What a replaced period gave is taken back where Apple refunded the rest of its price.
CREATE FUNCTION ledger.deliverables(purchase_ids bigint[], subscription_ids bigint[]) RETURNS SETOF ledger.deliverable
LANGUAGE sql STABLE AS $$
    WITH renewable AS MATERIALIZED (
        SELECT d.app_id, d.product_id, d.kind, ledger.delivers_since(d) AS since
        FROM ledger.product d
        WHERE d.kind = 'auto_renewable'
          AND d.app_id IN (SELECT s.app_id FROM ledger.subscription s WHERE s.subscription_id = ANY(subscription_ids))
    )
    SELECT p.app_id, p.environment, o.customer_id, p.product_id, p.kind, p.credit, p.units::bigint * p.quantity,
           p.quantity, p.purchased_at,
           COALESCE(p.kind <> 'auto_renewable' AND p.purchased_at >= p.since AND (p.revoked_at IS NULL OR ledger.taken_back(
               p.units::bigint * p.quantity, ledger.shown_percentage(p.facts)) < p.units::bigint * p.quantity), false),
           p.revoked_at IS NOT NULL, ledger.is_shared(p.facts #>> '{ownership,word}'), 'purchase',
           p.purchase_id, NULL::bigint, NULL::bigint, p.transaction_id, p.original_transaction_id,
           ledger.shown_percentage(p.facts)
    FROM (
        SELECT p.*, d.kind, d.credit, d.units, d.since
        FROM unnest(purchase_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = n.id AND p.version > 0 OFFSET 0) p
        LEFT JOIN LATERAL (
            SELECT d.kind, d.credit, d.units, ledger.delivers_since(d) AS since FROM ledger.product d
            WHERE d.app_id = p.app_id AND d.product_id = p.product_id AND d.kind IS NOT NULL OFFSET 0) d ON true
        WHERE d.kind IS NOT NULL OR EXISTS (SELECT FROM ledger.delivery l WHERE l.purchase_id = n.id OFFSET 0)
        OFFSET 0) p
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
          AND o.cause IS DISTINCT FROM 'pointer' OFFSET 0) o ON true
    UNION ALL
    SELECT e.app_id, e.environment, o.customer_id, e.product_id, e.kind, NULL, NULL, e.quantity, e.purchased_at,
           e.kind IS NOT NULL AND NOT ledger.is_moved(e.is_upgraded, e.cancellation_reason) AND NOT r.is_taken_back,
           r.is_taken_back,
           ledger.is_shared(e.ownership),
           CASE WHEN e.is_renewal THEN 'renewal' ELSE 'purchase' END,
           NULL, e.subscription_id, e.period_id, NULL, e.original_transaction_id, e.revocation_percentage
    FROM (
        SELECT e.*, s.app_id, s.environment, s.original_transaction_id, d.kind,
               NOT ledger.is_shared(e.ownership) AND ledger.is_rest_refunded(
                   e.is_upgraded, e.revocation_percentage, e.purchased_at, e.expires_at, e.cancelled_at, e.followed_at)
                   AS is_rest_refunded
        FROM unnest(subscription_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = n.id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) AS was_delivered,
                   (SELECT min(d.since) FROM renewable d WHERE d.app_id = s.app_id) AS since) has
        CROSS JOIN LATERAL (
            SELECT e.*,
                   lead(e.purchased_at) OVER (
                       PARTITION BY ledger.is_moved(e.is_upgraded, e.cancellation_reason)
                       ORDER BY e.purchased_at, e.period_id) AS followed_at
            FROM ledger.period e
            WHERE e.subscription_id = n.id AND (has.was_delivered OR s.head_starts_at >= has.since) OFFSET 0) e
        LEFT JOIN renewable d ON d.app_id = s.app_id AND d.product_id = e.product_id AND e.purchased_at >= d.since
        WHERE d.kind IS NOT NULL OR has.was_delivered
        OFFSET 0) e
    CROSS JOIN LATERAL (
        SELECT e.is_rest_refunded OR e.cancelled_at IS NOT NULL AND NOT e.is_upgraded AND e.replaced_by IS NULL
            AS is_taken_back) r
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.subscription_id = e.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
          AND o.cause IS DISTINCT FROM 'pointer' OFFSET 0) o ON true
    UNION ALL
    SELECT DISTINCT l.app_id, l.environment, NULL::bigint, l.product_id, l.kind, NULL, NULL::bigint, 1,
           NULL::timestamptz, false, true, false, 'purchase', NULL::bigint, l.subscription_id, l.period_id,
           l.transaction_id, l.original_transaction_id, NULL::int
    FROM unnest(subscription_ids) AS n(id)
    CROSS JOIN LATERAL (SELECT l.* FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) l
    WHERE NOT EXISTS (SELECT FROM ledger.period e WHERE e.period_id = l.period_id OFFSET 0)
$$;
COMMENT ON FUNCTION ledger.deliverables IS
    'One-time purchases, and the periods of subscriptions that are or were delivered, as deliveries see them; also '
    'periods that turned out to be another one';

-- The sum keeps out the indexes that begin with the app: a session keeps the plan that it made while the table was empty.
CREATE FUNCTION ledger.twins(of_purchase bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
    SELECT o.purchase_id
    FROM (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = of_purchase OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT o.purchase_id FROM ledger.purchase o
        WHERE o.product_id = p.product_id AND o.purchased_at = p.purchased_at AND o.app_account_token IS NULL
          AND o.app_id + 0 = p.app_id AND o.environment = p.environment AND o.quantity = p.quantity AND o.version > 0
          AND o.purchase_id <> p.purchase_id OFFSET 0) o
    WHERE p.app_account_token IS NULL AND p.version > 0
      AND (EXISTS (
            SELECT FROM ledger.receipt_purchase l
            JOIN ledger.receipt_purchase b ON b.receipt_id = l.receipt_id AND b.purchase_id = o.purchase_id
            WHERE l.purchase_id = p.purchase_id)
        OR EXISTS (
            SELECT FROM ledger.ownership w
            JOIN ledger.ownership b ON b.purchase_id = o.purchase_id AND upper_inf(b.known)
             AND ledger.is_same_customer(b.customer_id, w.customer_id)
            WHERE w.purchase_id = p.purchase_id AND upper_inf(w.known)))
$$;
COMMENT ON FUNCTION ledger.twins IS
    'The purchases that may be the same one under another id: of the same product, instant and quantity, none with an '
    'account token, and one receipt holds both, or one customer owns or owned both';

CREATE FUNCTION ledger.returns_part(of_purchase bigint, of_turn int) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT of_turn > 1 AND of_turn % 2 = 1 AND EXISTS (
        SELECT FROM (SELECT b.* FROM ledger.delivery b
                     WHERE b.purchase_id = of_purchase AND b.turn = of_turn - 1 AND b.skip_reason IS NULL OFFSET 0) b
        CROSS JOIN LATERAL (SELECT g.* FROM ledger.delivery g WHERE g.purchase_id = of_purchase AND g.turn = 1 OFFSET 0) g
        WHERE b.units < g.units)
$$;
COMMENT ON FUNCTION ledger.returns_part IS
    'Whether a turn gives back a part of a one-time purchase whose rest its customer has: it stays with that customer';

CREATE FUNCTION ledger.next_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS TABLE (
    thing ledger.deliverable, customer_id bigint, kind ledger.product_kind, credit text, units bigint, turn int,
    reason text, skip_reason text)
LANGUAGE sql STABLE AS $$
    WITH thing AS MATERIALIZED (
        SELECT t AS thing, t.*, last.turn AS last_turn, last.reason AS last_reason, last.customer_id AS last_customer,
               last.kind AS last_kind, last.credit AS last_credit, last.units AS last_units, last.given, last.is_erased,
               last.turn % 2 = 1 AND last.skip_reason = 'possible_duplicate' AS was_duplicate,
               CASE WHEN last.delivery_id IS NOT NULL AND last.skip_reason IS NULL
                    THEN NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = last.delivery_id OFFSET 0)
                    END AS is_acknowledged,
               -- Nothing is left to take back of an erased customer, and the new owner does not wait for it.
               last.reason = 'transfer' AND last.turn % 2 = 0 AND last.skip_reason = 'erased' AS is_given_up
        FROM ledger.deliverables(purchase_ids, subscription_ids) t
        LEFT JOIN LATERAL (
            SELECT l.delivery_id, l.turn, l.reason, l.skip_reason, l.customer_id, l.kind, l.credit, l.units,
                   max(l.units) OVER () AS given,
                   (SELECT c.erased_at IS NOT NULL FROM ledger.customer c WHERE c.customer_id = l.customer_id) AS is_erased
            FROM (
                SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                UNION ALL
                SELECT l.* FROM ledger.delivery l
                WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l
            ORDER BY l.turn DESC LIMIT 1) last ON true
    ), first AS (
        SELECT t.*
        FROM thing t
        WHERE (t.last_turn IS NULL OR t.was_duplicate AND t.owner_id = t.last_customer)
          AND t.is_wanted AND t.owner_id IS NOT NULL
    ), given AS (
        SELECT f.*,
               CASE WHEN f.is_family_shared THEN 'family_shared'
                    WHEN EXISTS (
                        SELECT FROM ledger.twins(f.purchase_id) AS w(id)
                        WHERE EXISTS (SELECT FROM first o WHERE o.purchase_id = w.id AND w.id < f.purchase_id)
                           OR EXISTS (
                                SELECT FROM ledger.delivery l
                                WHERE l.purchase_id = w.id AND l.reason = 'purchase'
                                  AND l.skip_reason IS DISTINCT FROM 'possible_duplicate'))
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
           CASE WHEN turn.reason = 'refund' THEN ledger.taken_back(t.given, t.refund_percentage)
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
        -- A turn stays as it was stored, because its consumer may have carried it out. Where a refund takes another part now,
        -- the next turn gives back what the last one took.
        WHERE t.last_turn % 2 = 0 AND (
            NOT t.is_taken_back OR t.last_reason = 'refund' AND t.refund_percentage IS NOT NULL
            AND t.last_units <> ledger.taken_back(t.given, t.refund_percentage))) turn
    WHERE (t.is_acknowledged OR t.is_given_up) AND turn.reason IS NOT NULL AND turn.customer_id IS NOT NULL
$$;
COMMENT ON FUNCTION ledger.next_turns IS
    'The turns that purchases and subscriptions need now: the one rule of deliveries, for settlements, acknowledgements, '
    'catalogs and verification. A turn that was skipped gave nothing, so nothing follows it; but what an erased customer '
    'was to give back goes to its next owner';

CREATE FUNCTION ledger.share_delivered(purchase_ids bigint[], subscription_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM ledger.purchase p WHERE p.purchase_id = ANY(purchase_ids)
    ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C" FOR SHARE;
    PERFORM FROM ledger.subscription s WHERE s.subscription_id = ANY(subscription_ids)
    ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C" FOR SHARE;
END $$;
COMMENT ON FUNCTION ledger.share_delivered IS
    'Keeps settlements from changing purchases and subscriptions until the transaction ends; locks them in the order of '
    'their natural keys';

CREATE FUNCTION ledger.mark_due(purchase_ids bigint[], subscription_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    delivered bigint[] := ARRAY(
        SELECT l.delivery_id FROM ledger.delivery l WHERE l.purchase_id = ANY(purchase_ids)
        UNION ALL
        SELECT l.delivery_id FROM ledger.delivery l WHERE l.subscription_id = ANY(subscription_ids));
BEGIN
    IF cardinality(delivered) > 0 THEN
        UPDATE ledger.due_delivery n SET changed_since = true
        WHERE n.delivery_id = ANY(ARRAY(
            SELECT q.delivery_id FROM ledger.due_delivery q
            WHERE q.delivery_id = ANY(delivered) AND NOT q.changed_since
            ORDER BY q.delivery_id FOR NO KEY UPDATE));
    END IF;
END $$;
COMMENT ON FUNCTION ledger.mark_due IS
    'Marks due deliveries of purchases and subscriptions that change, and waits for those that are being acknowledged. So '
    'an acknowledgement needs to look at nothing but the queue where nothing changed';

CREATE FUNCTION ledger.store_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS bigint
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
        RETURNING delivery_id, app_id, environment, order_id, purchase_id, turn, skip_reason
    ), queued AS (
        INSERT INTO ledger.due_delivery (delivery_id, app_id, environment, order_id, changed_since)
        SELECT s.delivery_id, s.app_id, s.environment, s.order_id, s.turn > 1 OR EXISTS (
                   SELECT FROM ledger.purchase p WHERE p.purchase_id = s.purchase_id AND p.revoked_at IS NOT NULL OFFSET 0)
        FROM stored s WHERE s.skip_reason IS NULL)
    SELECT count(*) INTO turns FROM stored;
    RETURN turns;
END $$;
COMMENT ON FUNCTION ledger.store_turns IS
    'Stores the turns that purchases and subscriptions need now, and returns their number. The caller has locked these. It is '
    'PL/pgSQL, because a session then plans it once';

CREATE FUNCTION ledger.advance_orders(order_ids uuid[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE ledger.purchase_order o
    SET state = n.state, cause = n.cause, changed_at = clock_timestamp()
    FROM (SELECT DISTINCT id FROM unnest(order_ids) AS i(id) ORDER BY id) i
    CROSS JOIN LATERAL ledger.order_settled(i.id) n
    WHERE o.order_id = i.id AND o.state <> n.state
$$;
COMMENT ON FUNCTION ledger.advance_orders IS
    'Makes paid orders delivered when the turn that gives is settled, and refunded when the take-back is';

CREATE FUNCTION ledger.settle_deliveries(app_id int, ids bigint[], settler text, why text)
RETURNS TABLE (delivery_id bigint, state text, settled_at timestamptz, settled_by text, is_first boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    changed bigint[];
    purchases bigint[];
    subscriptions bigint[];
    settled bigint[];
    orders uuid[];
    is_late boolean;
BEGIN
    -- Purchases and subscriptions are locked before their deliveries.
    SELECT array_agg(d.delivery_id), array_agg(DISTINCT d.purchase_id) FILTER (WHERE d.purchase_id IS NOT NULL),
           array_agg(DISTINCT d.subscription_id) FILTER (WHERE d.subscription_id IS NOT NULL)
    INTO changed, purchases, subscriptions
    FROM ledger.due_delivery q JOIN ledger.delivery d USING (delivery_id)
    WHERE q.delivery_id = ANY(ids) AND q.app_id + 0 = settle_deliveries.app_id AND q.changed_since;
    IF changed IS NOT NULL THEN
        PERFORM ledger.share_delivered(purchases, subscriptions);
    END IF;
    WITH gone AS (
        DELETE FROM ledger.due_delivery q
        -- The sum keeps the queue's index out, as in acknowledge_unchanged.
        WHERE q.delivery_id = ANY(ids) AND q.app_id + 0 = settle_deliveries.app_id
        RETURNING q.delivery_id, q.order_id, q.changed_since)
    SELECT array_agg(n.delivery_id), array_agg(n.order_id) FILTER (WHERE n.order_id IS NOT NULL),
           bool_or(n.changed_since AND n.delivery_id <> ALL(COALESCE(changed, '{}')))
    INTO settled, orders, is_late FROM gone n;
    IF is_late THEN
        RAISE EXCEPTION 'what a delivery gives changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    IF why IS NULL THEN
        PERFORM ledger.store_acknowledgement(settled, settler);
    ELSE
        UPDATE ledger.delivery d SET skipped_at = clock_timestamp(), skipped_by = settler, skip_reason = why
        WHERE d.delivery_id = ANY(settled);
    END IF;
    IF changed IS NOT NULL THEN
        PERFORM ledger.store_turns(COALESCE(purchases, '{}'), COALESCE(subscriptions, '{}'));
    END IF;
    IF orders IS NOT NULL THEN
        PERFORM ledger.advance_orders(orders);
    END IF;
    RETURN QUERY
    SELECT d.delivery_id, d.state::text, d.settled_at, d.settled_by, n.id IS NOT NULL
    FROM ledger.delivery_now d LEFT JOIN unnest(settled) AS n(id) ON n.id = d.delivery_id
    WHERE d.delivery_id = ANY(ids) AND d.app_id = settle_deliveries.app_id;
END $$;
COMMENT ON FUNCTION ledger.settle_deliveries IS
    'Makes due deliveries of an app acknowledged, or skipped if there is a reason, and stores the turns that follow. Returns '
    'all of ids that the app has, with their state; is_first marks those that changed. A delivery whose purchase changed '
    'meanwhile fails as a serialization failure, and the caller tries again';

CREATE FUNCTION ledger.place_deliveries(places int) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    placed bigint[] := ARRAY(
        SELECT d.delivery_id FROM ledger.delivery d WHERE d.position IS NULL ORDER BY d.delivery_id LIMIT places);
    last bigint;
BEGIN
    -- width_bucket finds the place of a number among the sorted ones.
    UPDATE ledger.delivery_queue q SET position = q.position + cardinality(placed)
    RETURNING q.position - cardinality(placed) INTO last;
    -- Every writer locks the queue before the deliveries.
    UPDATE ledger.due_delivery q SET position = last + width_bucket(q.delivery_id, placed)
    WHERE q.delivery_id = ANY(ARRAY(
        SELECT l.delivery_id FROM ledger.due_delivery l
        WHERE l.delivery_id = ANY(placed) ORDER BY l.delivery_id FOR UPDATE));
    UPDATE ledger.delivery d SET position = last + width_bucket(d.delivery_id, placed)
    WHERE d.delivery_id = ANY(placed);
END $$;
COMMENT ON FUNCTION ledger.place_deliveries IS
    'Gives committed deliveries their positions, at most places of them; the caller has the lock of the queue';

CREATE FUNCTION ledger.store_acknowledgement(ids bigint[], acknowledger text) RETURNS timestamptz
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    instant timestamptz := clock_timestamp();
BEGIN
    INSERT INTO ledger.acknowledgement (hundred, delivery_ids, acknowledged_at, acknowledged_by)
    SELECT n.id / 100, array_agg(n.id), instant, acknowledger FROM unnest(ids) AS n(id) GROUP BY n.id / 100;
    RETURN instant;
END $$;
COMMENT ON FUNCTION ledger.store_acknowledgement IS
    'Stores that deliveries, which the caller took out of the queue, are acknowledged; returns when';

CREATE FUNCTION ledger.acknowledge_unchanged(app text, ids bigint[], acknowledger text)
RETURNS TABLE (delivery_ids bigint[], acknowledged_at timestamptz)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
-- Only an index scan locks in the order of the numbers.
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    named int := (SELECT a.app_id FROM ledger.app a WHERE a.bundle_id = app AND a.removed_at IS NULL);
BEGIN
    WITH gone AS (
        DELETE FROM ledger.due_delivery q
        -- The sum keeps the queue's index out, which looks as good while the queue is empty.
        WHERE q.delivery_id = ANY(ids) AND q.app_id + 0 = named AND q.order_id IS NULL AND NOT q.changed_since
        RETURNING q.delivery_id)
    SELECT COALESCE(array_agg(g.delivery_id), '{}') INTO delivery_ids FROM gone g;
    acknowledged_at := ledger.store_acknowledgement(delivery_ids, acknowledger);
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION ledger.acknowledge_unchanged IS
    'Acknowledges those due deliveries of an app that pay no order and whose purchase did not change: nothing follows from '
    'these, so they only leave the queue. Returns them; settle_deliveries does the others';

CREATE FUNCTION ledger.deliveries_in_doubt(purchase_ids bigint[], subscription_ids bigint[])
RETURNS TABLE (delivery_id bigint, purchase_id bigint, subscription_id bigint, doubt text)
LANGUAGE sql STABLE AS $$
    SELECT d.delivery_id, d.purchase_id, d.subscription_id,
           CASE WHEN (d.app_id, d.environment) <> (i.app_id, i.environment) THEN 'of another app or environment'
                WHEN said.times = 0 THEN 'neither due nor acknowledged nor skipped'
                WHEN said.times = 1 THEN 'another one in the queue' ELSE 'more than one of due, acknowledged and skipped' END
    FROM (SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = ANY(purchase_ids)
          UNION ALL
          SELECT l.* FROM ledger.delivery l WHERE l.subscription_id = ANY(subscription_ids)) d
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.environment FROM ledger.purchase p WHERE p.purchase_id = d.purchase_id
        UNION ALL
        SELECT s.app_id, s.environment FROM ledger.subscription s WHERE s.subscription_id = d.subscription_id) i
    LEFT JOIN LATERAL (
        SELECT q.* FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id OFFSET 0) q ON true
    CROSS JOIN LATERAL (
        SELECT (d.skip_reason IS NOT NULL)::int + (q.delivery_id IS NOT NULL)::int
               + (SELECT count(*) FROM ledger.acknowledgement k
                  WHERE k.hundred = d.delivery_id / 100 AND d.delivery_id = ANY(k.delivery_ids)) AS times OFFSET 0) said
    WHERE said.times <> 1 OR (d.app_id, d.environment) <> (i.app_id, i.environment)
       OR q.delivery_id IS NOT NULL AND (q.app_id, q.environment, q.position, q.order_id)
          IS DISTINCT FROM (d.app_id, d.environment, d.position, d.order_id)
    UNION ALL
    SELECT d.delivery_id, d.purchase_id, NULL, 'due to another customer than the one whose order its account token names'
    FROM ledger.delivery d
    JOIN ledger.due_delivery q USING (delivery_id)
    JOIN ledger.purchase p ON p.purchase_id = d.purchase_id
    JOIN ledger.purchase_order r ON r.app_account_token = ledger.account_token(p.app_account_token) AND r.app_id = p.app_id
    JOIN ledger.ownership o ON o.purchase_id = d.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
    CROSS JOIN LATERAL ledger.claim_of(o) b
    WHERE d.purchase_id = ANY(purchase_ids) AND d.reason = 'purchase'
      AND NOT ledger.is_same_customer(d.customer_id, r.customer_id)
      -- A token that is learnt later counts from the next upload on.
      AND (b.cause = 'token' OR b.cause = 'proof' AND EXISTS (
          SELECT FROM ledger.order_receipt x JOIN ledger.receipt_purchase l USING (receipt_id)
          WHERE x.order_id = r.order_id AND x.is_proved AND l.purchase_id = d.purchase_id))
$$;
COMMENT ON FUNCTION ledger.deliveries_in_doubt IS
    'Deliveries of purchases and subscriptions that are of another app or environment, that are not exactly one of due, '
    'acknowledged and skipped, that have another app, environment, position or order in the queue, or that are due to '
    'another customer than the one whose order the account token names that brought the purchase';

CREATE FUNCTION ledger.given_to(of_purchase bigint, of_subscription bigint, of_period bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN l.turn % 2 = 0 OR ledger.returns_part(of_purchase, l.turn) OR NOT EXISTS (
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
    'skipped, unless that one is still to give all of it; null: none';

CREATE FUNCTION ledger.held_by(of_purchase bigint, of_subscription bigint, of_period bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    given bigint := ledger.given_to(of_purchase, of_subscription, of_period);
    owned ledger.ownership;
BEGIN
    IF given IS NOT NULL THEN
        RETURN given;
    END IF;
    SELECT w.* INTO owned
    FROM (SELECT w.* FROM ledger.ownership w WHERE w.purchase_id = of_purchase
          UNION ALL
          SELECT w.* FROM ledger.ownership w WHERE w.subscription_id = of_subscription) w
    WHERE upper_inf(w.known) AND upper_inf(w.valid);
    RETURN CASE WHEN owned.cause IN ('token', 'proof', 'assignment') THEN owned.customer_id ELSE COALESCE((
        SELECT d.customer_id
        FROM (SELECT d.* FROM ledger.delivery d WHERE d.purchase_id = of_purchase
              UNION ALL
              SELECT d.* FROM ledger.delivery d
              WHERE d.subscription_id = of_subscription AND d.period_id = of_period) d
        CROSS JOIN LATERAL (
            SELECT q.order_id FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id OFFSET 0) q
        WHERE q.order_id IS NOT NULL LIMIT 1), owned.customer_id) END;
END $$;
COMMENT ON FUNCTION ledger.held_by IS
    'The customer whose orders alone a one-time purchase or a period pays: to whom it was given; else the owner, except that '
    'what is due for an order stays with its customer where the app''s policy alone transferred it; null: none';
