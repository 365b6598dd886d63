-- Deliveries: what each purchase and each period gives, once, and what is taken back.
CREATE TYPE ledger.delivery_state AS ENUM ('due', 'acknowledged', 'skipped');
COMMENT ON TYPE ledger.delivery_state IS
    'due: the operator''s service is to carry it out; acknowledged: it did; skipped: nothing is to be done';

CREATE TABLE ledger.delivery (
    delivery_id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position                 bigint,
    app_id                   int NOT NULL REFERENCES ledger.app,
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
    state                    ledger.delivery_state NOT NULL DEFAULT 'due',
    created_at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at               timestamptz,
    settled_by               text,
    skip_reason              text,
    changed_since            boolean NOT NULL DEFAULT false,
    CONSTRAINT delivery_is_of_one_thing CHECK (
        num_nonnulls(purchase_id, subscription_id) = 1 AND (subscription_id IS NULL) = (period_id IS NULL)),
    CONSTRAINT delivery_turn_is_counted_from_one CHECK (turn > 0),
    CONSTRAINT delivery_reason_fits_turn CHECK (
        CASE turn % 2 WHEN 1 THEN reason IN ('purchase', 'renewal', 'refund_reversed', 'transfer')
             ELSE reason IN ('refund', 'transfer') END),
    CONSTRAINT delivery_credit_of_consumable CHECK (
        CASE kind WHEN 'consumable' THEN num_nulls(credit, units) = 0 ELSE num_nonnulls(credit, units) = 0 END),
    CONSTRAINT delivery_due_is_open CHECK ((state = 'due') = (settled_at IS NULL)),
    CONSTRAINT delivery_skip_has_reason CHECK ((state = 'skipped') = (skip_reason IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
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
COMMENT ON COLUMN ledger.delivery.units IS 'Units of the credit that it gives or takes back: the catalog''s times the quantity';
COMMENT ON COLUMN ledger.delivery.settled_at IS 'When it was acknowledged or skipped';
COMMENT ON COLUMN ledger.delivery.settled_by IS 'The API key, person or rule that did it';
COMMENT ON COLUMN ledger.delivery.skip_reason IS
    'family_shared: the purchase is another family member''s; possible_duplicate: Apple listed the same purchase under '
    'another id; erased: the customer was erased; claimed_by_order: an order''s customer got it before it was given; or the '
    'words of the person who skipped it';
COMMENT ON COLUMN ledger.delivery.changed_since IS
    'What it delivers may have changed since: the next turn is looked for when it is acknowledged or skipped';

CREATE TABLE ledger.due_delivery (
    app_id       int NOT NULL,
    environment  ledger.environment NOT NULL,
    position     bigint NOT NULL,
    delivery_id  bigint NOT NULL,
    PRIMARY KEY (app_id, environment, position)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE ledger.due_delivery IS 'The due deliveries that have a position: the queue that services read';

CREATE FUNCTION ledger.leave_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- A session may have planned it while the queue was short.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    DELETE FROM ledger.due_delivery q USING new_row n
    WHERE n.state <> 'due' AND q.app_id = n.app_id AND q.environment = n.environment AND q.position = n.position;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION ledger.leave_queue IS
    'Removes settled deliveries from the queue. It is a trigger, because a statement does not see the position that a '
    'delivery got while the statement waited for it';
CREATE TRIGGER delivery_is_settled AFTER UPDATE ON ledger.delivery
    REFERENCING NEW TABLE AS new_row FOR EACH STATEMENT EXECUTE FUNCTION ledger.leave_queue();

CREATE TABLE ledger.delivery_queue (
    is_only   boolean PRIMARY KEY DEFAULT true,
    position  bigint NOT NULL DEFAULT 0,
    CONSTRAINT delivery_queue_is_one CHECK (is_only)
);
INSERT INTO ledger.delivery_queue DEFAULT VALUES;
COMMENT ON TABLE ledger.delivery_queue IS 'The last position in the queue of deliveries';

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

CREATE FUNCTION ledger.delivers_since(product ledger.product) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(product.delivers_since, (
        SELECT t.delivers_since FROM ledger.product_terms t
        WHERE t.app_id = product.app_id AND t.product_id = product.product_id
        ORDER BY t.applied_at DESC LIMIT 1))
$$;
COMMENT ON FUNCTION ledger.delivers_since IS 'What was bought of a product before this instant is not delivered';

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
    'A purchase or a period as deliveries see it. is_wanted: the catalog delivers it; is_taken_back: Apple refunded or '
    'revoked it, or it turned out to be another period; refund_percentage: how much of the price Apple gave back, in '
    'thousandths of a percent, null where no signed transaction stated it';

CREATE FUNCTION ledger.deliverables(purchase_ids bigint[], subscription_ids bigint[]) RETURNS SETOF ledger.deliverable
LANGUAGE sql STABLE AS $$
    WITH renewable AS MATERIALIZED (
        SELECT d.app_id, d.product_id, d.kind, ledger.delivers_since(d) AS since
        FROM ledger.product d
        WHERE d.kind = 'auto_renewable'
          AND d.app_id IN (SELECT s.app_id FROM ledger.subscription s WHERE s.subscription_id = ANY(subscription_ids))
    )
    SELECT p.app_id, p.environment, o.customer_id, p.product_id, p.kind, p.credit, p.units::bigint * p.quantity,
           p.quantity, p.purchased_at, COALESCE(p.kind <> 'auto_renewable' AND p.purchased_at >= p.since, false),
           p.revoked_at IS NOT NULL, COALESCE(p.facts #>> '{ownership,word}' = 'FAMILY_SHARED', false), 'purchase',
           p.purchase_id, NULL::bigint, NULL::bigint, p.transaction_id, p.original_transaction_id,
           (p.facts #>> '{refunded,percentage}')::int
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
        WHERE o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o ON true
    UNION ALL
    SELECT e.app_id, e.environment, o.customer_id, e.product_id, e.kind, NULL, NULL, e.quantity, e.purchased_at,
           e.kind IS NOT NULL, e.cancelled_at IS NOT NULL AND NOT e.is_upgraded AND e.replaced_by IS NULL,
           COALESCE(e.ownership = 'FAMILY_SHARED', false),
           CASE WHEN e.purchased_at > e.first_at THEN 'renewal' ELSE 'purchase' END,
           NULL, e.subscription_id, e.period_id, NULL, e.original_transaction_id, e.revocation_percentage
    FROM (
        SELECT e.*, s.app_id, s.environment, s.original_transaction_id, d.kind
        FROM unnest(subscription_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = n.id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) AS was_delivered,
                   (SELECT min(d.since) FROM renewable d WHERE d.app_id = s.app_id) AS since) has
        CROSS JOIN LATERAL (
            SELECT e.*, min(e.purchased_at) OVER () AS first_at FROM ledger.period e
            WHERE e.subscription_id = n.id AND (has.was_delivered OR s.head_starts_at >= has.since) OFFSET 0) e
        LEFT JOIN renewable d ON d.app_id = s.app_id AND d.product_id = e.product_id AND e.purchased_at >= d.since
        WHERE d.kind IS NOT NULL OR has.was_delivered
        OFFSET 0) e
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.subscription_id = e.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o ON true
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

CREATE FUNCTION ledger.next_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS TABLE (
    thing ledger.deliverable, customer_id bigint, kind ledger.product_kind, credit text, units bigint, turn int,
    reason text, skip_reason text)
LANGUAGE sql STABLE AS $$
    WITH thing AS MATERIALIZED (
        SELECT t AS thing, t.*, last.turn AS last_turn, last.state AS last_state, last.reason AS last_reason,
               last.customer_id AS last_customer, last.kind AS last_kind, last.credit AS last_credit,
               last.units AS last_units, last.is_erased,
               -- Nothing is left to take back of an erased customer, and the new owner does not wait for it.
               last.reason = 'transfer' AND last.turn % 2 = 0 AND last.skip_reason = 'erased' AS is_given_up
        FROM ledger.deliverables(purchase_ids, subscription_ids) t
        LEFT JOIN LATERAL (
            SELECT l.turn, l.state, l.reason, l.skip_reason, l.customer_id, l.kind, l.credit, l.units,
                   (SELECT c.erased_at IS NOT NULL FROM ledger.customer c WHERE c.customer_id = l.customer_id) AS is_erased
            FROM (
                SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = t.purchase_id
                UNION ALL
                SELECT l.* FROM ledger.delivery l
                WHERE l.subscription_id = t.subscription_id AND l.period_id = t.period_id) l
            ORDER BY l.turn DESC LIMIT 1) last ON true
    ), first AS (
        SELECT t.*, (
            SELECT lower(p.app_account_token) FROM ledger.purchase p WHERE p.purchase_id = t.purchase_id) AS token
        FROM thing t
        WHERE t.last_turn IS NULL AND t.is_wanted AND NOT t.is_taken_back AND t.owner_id IS NOT NULL
    )
    SELECT f.thing, f.owner_id, f.kind, f.credit, f.units, 1, f.reason,
           CASE WHEN f.is_family_shared THEN 'family_shared'
                WHEN EXISTS (
                    SELECT FROM first o
                    WHERE o.purchase_id < f.purchase_id AND o.owner_id = f.owner_id AND o.environment = f.environment
                      AND o.product_id = f.product_id AND o.purchased_at = f.purchased_at AND o.quantity = f.quantity
                      AND (o.token <> f.token) IS NOT TRUE)
                  OR EXISTS (
                    SELECT FROM ledger.delivery l
                    CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id OFFSET 0) p
                    WHERE l.customer_id = f.owner_id AND l.reason = 'purchase' AND l.product_id = f.product_id
                      AND l.skip_reason IS DISTINCT FROM 'claimed_by_order'
                      AND p.environment = f.environment AND p.purchased_at = f.purchased_at
                      AND p.quantity = f.quantity AND p.purchase_id <> f.purchase_id
                      AND (lower(p.app_account_token) <> f.token) IS NOT TRUE)
                THEN 'possible_duplicate' END
    FROM first f
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
    WHERE (t.last_state = 'acknowledged' OR t.is_given_up) AND turn.reason IS NOT NULL AND turn.customer_id IS NOT NULL
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
BEGIN
    IF cardinality(purchase_ids) > 0 THEN
        UPDATE ledger.delivery d SET changed_since = true
        FROM (SELECT l.delivery_id FROM ledger.delivery l
              WHERE l.purchase_id = ANY(purchase_ids) AND l.state = 'due' AND NOT l.changed_since
              ORDER BY l.delivery_id FOR NO KEY UPDATE) l
        WHERE d.delivery_id = l.delivery_id;
    END IF;
    IF cardinality(subscription_ids) > 0 THEN
        UPDATE ledger.delivery d SET changed_since = true
        FROM (SELECT l.delivery_id FROM ledger.delivery l
              WHERE l.subscription_id = ANY(subscription_ids) AND l.state = 'due' AND NOT l.changed_since
              ORDER BY l.delivery_id FOR NO KEY UPDATE) l
        WHERE d.delivery_id = l.delivery_id;
    END IF;
END $$;
COMMENT ON FUNCTION ledger.mark_due IS
    'Marks due deliveries of purchases and subscriptions that change, and waits for those that are being acknowledged. So '
    'an acknowledgement needs to look at nothing but the delivery where nothing changed';

CREATE FUNCTION ledger.store_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    turns bigint;
BEGIN
    PERFORM ledger.mark_due(purchase_ids, subscription_ids);
    WITH stored AS (
        INSERT INTO ledger.delivery (
            app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, order_id, purchase_id,
            subscription_id, period_id, transaction_id, original_transaction_id, state, settled_at, settled_by, skip_reason,
            changed_since)
        SELECT (n.thing).app_id, (n.thing).environment, n.customer_id, (n.thing).product_id, n.kind, n.credit, n.units,
               n.turn, n.reason, o.order_id, (n.thing).purchase_id, (n.thing).subscription_id, (n.thing).period_id,
               COALESCE((n.thing).transaction_id, (
                   SELECT min(a.transaction_id COLLATE "C") FROM ledger.transaction_alias a
                   WHERE a.period_id = (n.thing).period_id)), (n.thing).original_transaction_id,
               CASE WHEN n.skip_reason IS NULL THEN 'due' ELSE 'skipped' END::ledger.delivery_state,
               CASE WHEN n.skip_reason IS NOT NULL THEN clock_timestamp() END,
               CASE WHEN n.skip_reason IS NOT NULL THEN 'perennial' END, n.skip_reason, n.turn > 1
        FROM ledger.next_turns(purchase_ids, subscription_ids) n
        LEFT JOIN LATERAL (
            SELECT o.order_id FROM ledger.purchase_order o WHERE o.purchase_id = (n.thing).purchase_id
            UNION ALL
            SELECT o.order_id FROM ledger.purchase_order o
            WHERE o.subscription_id = (n.thing).subscription_id AND o.period_id = (n.thing).period_id) o ON true
        ORDER BY (n.thing).purchase_id, (n.thing).subscription_id, (n.thing).purchased_at, (n.thing).period_id
        -- Two acknowledgements may need the same turn.
        ON CONFLICT DO NOTHING
        RETURNING 1)
    SELECT count(*) INTO turns FROM stored;
    RETURN turns;
END $$;
COMMENT ON FUNCTION ledger.store_turns IS
    'Stores the turns that purchases and subscriptions need now, and returns their number. The caller has locked these. '
    'It is PL/pgSQL, because a session then plans it once';

CREATE FUNCTION ledger.advance_orders(order_ids uuid[]) RETURNS void
LANGUAGE sql AS $$
    UPDATE ledger.purchase_order o
    SET state = n.state, cause = n.cause, changed_at = clock_timestamp()
    FROM (
        SELECT i.id AS order_id, last.state::text AS cause,
               CASE WHEN last.turn % 2 = 1 THEN 'delivered' ELSE 'refunded' END::ledger.order_state AS state
        FROM (SELECT DISTINCT id FROM unnest(order_ids) AS i(id) ORDER BY id) i
        CROSS JOIN LATERAL (
            SELECT d.turn, d.state FROM ledger.delivery d
            WHERE d.order_id = i.id AND d.state <> 'due'
            ORDER BY d.turn DESC LIMIT 1) last) n
    WHERE o.order_id = n.order_id AND o.state <> n.state
$$;
COMMENT ON FUNCTION ledger.advance_orders IS
    'Makes paid orders delivered when the turn that gives is settled, and refunded when the take-back is';

CREATE FUNCTION ledger.settle_deliveries(app_id int, ids bigint[], settler text, why text)
RETURNS TABLE (delivery_id bigint, state text, settled_at timestamptz, settled_by text, is_first boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
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
    FROM ledger.delivery d
    WHERE d.delivery_id = ANY(ids) AND d.app_id = settle_deliveries.app_id AND d.state = 'due' AND d.changed_since;
    IF changed IS NOT NULL THEN
        PERFORM ledger.share_delivered(purchases, subscriptions);
    END IF;
    WITH done AS (
        UPDATE ledger.delivery d
        SET state = CASE WHEN why IS NULL THEN 'acknowledged' ELSE 'skipped' END::ledger.delivery_state,
            settled_at = clock_timestamp(), settled_by = settler, skip_reason = why
        WHERE d.delivery_id = ANY(ids) AND d.app_id = settle_deliveries.app_id AND d.state = 'due'
        RETURNING d.delivery_id, d.order_id, d.changed_since)
    SELECT array_agg(n.delivery_id), array_agg(n.order_id) FILTER (WHERE n.order_id IS NOT NULL),
           bool_or(n.changed_since AND n.delivery_id <> ALL(COALESCE(changed, '{}')))
    INTO settled, orders, is_late FROM done n;
    IF is_late THEN
        RAISE EXCEPTION 'what a delivery gives changed meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    IF changed IS NOT NULL THEN
        PERFORM ledger.store_turns(COALESCE(purchases, '{}'), COALESCE(subscriptions, '{}'));
    END IF;
    IF orders IS NOT NULL THEN
        PERFORM ledger.advance_orders(orders);
    END IF;
    RETURN QUERY
    SELECT d.delivery_id, d.state::text, d.settled_at, d.settled_by, n.id IS NOT NULL
    FROM ledger.delivery d LEFT JOIN unnest(settled) AS n(id) ON n.id = d.delivery_id
    WHERE d.delivery_id = ANY(ids) AND d.app_id = settle_deliveries.app_id;
END $$;
COMMENT ON FUNCTION ledger.settle_deliveries IS
    'Makes due deliveries of an app acknowledged, or skipped if there is a reason, and stores the turns that follow. Returns '
    'all of ids that the app has, with their state; is_first marks those that changed. A delivery whose purchase changed '
    'meanwhile fails as a serialization failure, and the caller tries again';

CREATE VIEW perennial.delivery_log AS
SELECT a.bundle_id, d.delivery_id::text AS delivery_id, d.position, head.name AS customer, d.environment::text AS environment,
       d.product_id, d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id,
       d.transaction_id, d.original_transaction_id, d.state::text AS state, d.created_at,
       CASE WHEN d.state = 'acknowledged' THEN d.settled_at END AS acknowledged_at,
       CASE WHEN d.state = 'acknowledged' THEN d.settled_by END AS acknowledged_by, d.skip_reason
FROM ledger.delivery d
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);
COMMENT ON VIEW perennial.delivery_log IS 'Every delivery: what a purchase or period gives (odd turn) or takes back (even turn)';

CREATE VIEW perennial.credit_balance AS
SELECT a.bundle_id, head.name AS customer, d.environment::text AS environment, d.credit,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END) AS units
FROM ledger.delivery d
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.state = 'acknowledged' AND d.credit IS NOT NULL
GROUP BY a.bundle_id, head.name, d.environment, d.credit;
COMMENT ON VIEW perennial.credit_balance IS
    'What acknowledged deliveries gave each customer of each credit, less what they took back. The operator''s service '
    'knows what of it was used up';

CREATE VIEW perennial.delivery_due AS
SELECT a.bundle_id, d.delivery_id::text AS delivery_id, d.position, head.name AS customer, due.environment::text AS environment,
       d.product_id, d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id,
       d.transaction_id, d.original_transaction_id, d.created_at, (
           SELECT sum(CASE WHEN l.turn % 2 = 1 THEN l.units ELSE -l.units END)
           FROM ledger.delivery l
           WHERE l.customer_id IN (SELECT head.customer_id
                                   UNION ALL
                                   SELECT n.customer_id FROM ledger.customer n WHERE n.merged_into = head.customer_id)
             AND l.environment = d.environment AND l.credit = d.credit AND l.state = 'acknowledged') AS balance
FROM (SELECT q.app_id, q.environment, q.delivery_id FROM ledger.due_delivery q
      UNION ALL
      SELECT n.app_id, n.environment, n.delivery_id FROM ledger.delivery n
      WHERE n.position IS NULL AND n.state = 'due') due
JOIN ledger.app a USING (app_id)
JOIN ledger.delivery d USING (delivery_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);
COMMENT ON VIEW perennial.delivery_due IS
    'Every due delivery: what the operator''s service has not carried out. It reads what is due, not what was delivered';

-- Earlier programs settle purchases without delivering them.
UPDATE ledger.compatibility SET program_min = 23;
