-- Deliveries: what is due is in one narrow table, and one row acknowledges many deliveries. So an acknowledgement changes no
-- row of ledger.delivery, and costs what leaving the queue costs.

-- Programs of before settle deliveries while this migration waits for them.
LOCK TABLE ledger.delivery, ledger.due_delivery IN ACCESS EXCLUSIVE MODE;

CREATE TABLE ledger.acknowledgement (
    hundred          bigint NOT NULL,
    delivery_ids     bigint[] NOT NULL,
    acknowledged_at  timestamptz NOT NULL,
    acknowledged_by  text NOT NULL,
    CONSTRAINT acknowledgement_is_of_a_delivery CHECK (cardinality(delivery_ids) > 0)
);
-- Each delivery had an instant of its own; those of one second and key were one call.
INSERT INTO ledger.acknowledgement (hundred, delivery_ids, acknowledged_at, acknowledged_by)
SELECT d.delivery_id / 100, array_agg(d.delivery_id ORDER BY d.delivery_id), min(d.settled_at), d.settled_by
FROM ledger.delivery d WHERE d.state = 'acknowledged'
GROUP BY d.delivery_id / 100, date_trunc('second', d.settled_at), d.settled_by;
CREATE INDEX acknowledgement_of_hundred ON ledger.acknowledgement (hundred);
COMMENT ON TABLE ledger.acknowledgement IS
    'Which deliveries were carried out: a row for each call and hundred of delivery numbers. A delivery is in one row';
COMMENT ON COLUMN ledger.acknowledgement.hundred IS 'The numbers of the deliveries, divided by 100';
COMMENT ON COLUMN ledger.acknowledgement.acknowledged_by IS 'The API key or person that made the call';

DROP TRIGGER delivery_is_settled ON ledger.delivery;
DROP FUNCTION ledger.leave_queue();
ALTER TABLE ledger.due_delivery
    DROP CONSTRAINT due_delivery_pkey,
    ALTER COLUMN position DROP NOT NULL,
    ADD COLUMN order_id uuid,
    ADD COLUMN changed_since boolean NOT NULL DEFAULT false,
    ADD PRIMARY KEY (delivery_id);
UPDATE ledger.due_delivery q SET order_id = d.order_id, changed_since = d.changed_since
FROM ledger.delivery d WHERE d.delivery_id = q.delivery_id AND (d.order_id IS NOT NULL OR d.changed_since);
INSERT INTO ledger.due_delivery (app_id, environment, delivery_id, order_id, changed_since)
SELECT d.app_id, d.environment, d.delivery_id, d.order_id, d.changed_since
FROM ledger.delivery d WHERE d.position IS NULL AND d.state = 'due';
-- Deliveries that have no position yet come last.
CREATE UNIQUE INDEX due_delivery_queue ON ledger.due_delivery (app_id, environment, position);
COMMENT ON TABLE ledger.due_delivery IS
    'The due deliveries: the queue that services read. A delivery that left it was acknowledged or skipped';
COMMENT ON COLUMN ledger.due_delivery.position IS 'The place in the queue, given after the commit; null: not yet';
COMMENT ON COLUMN ledger.due_delivery.order_id IS 'The order that changes when the delivery is settled; null: none';
COMMENT ON COLUMN ledger.due_delivery.changed_since IS
    'What it delivers may have changed since: the next turn is looked for when it is acknowledged or skipped';

ALTER TABLE ledger.delivery
    DROP CONSTRAINT delivery_due_is_open,
    DROP CONSTRAINT delivery_skip_has_reason,
    ADD COLUMN skipped_at timestamptz,
    ADD COLUMN skipped_by text,
    -- What changes of a delivery, its position and its customer, is in indexes, so room on the page is of no use.
    RESET (fillfactor);
UPDATE ledger.delivery SET skipped_at = settled_at, skipped_by = settled_by WHERE state = 'skipped';
ALTER TABLE ledger.delivery ADD CONSTRAINT delivery_skip_is_whole CHECK (
    num_nulls(skipped_at, skipped_by, skip_reason) IN (0, 3));
COMMENT ON COLUMN ledger.delivery.skipped_at IS 'When it was skipped; null: it is due or acknowledged';
COMMENT ON COLUMN ledger.delivery.skipped_by IS 'The person or rule that did it';

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

CREATE OR REPLACE FUNCTION ledger.next_turns(purchase_ids bigint[], subscription_ids bigint[]) RETURNS TABLE (
    thing ledger.deliverable, customer_id bigint, kind ledger.product_kind, credit text, units bigint, turn int,
    reason text, skip_reason text)
LANGUAGE sql STABLE AS $$
    WITH thing AS MATERIALIZED (
        SELECT t AS thing, t.*, last.turn AS last_turn, last.reason AS last_reason, last.customer_id AS last_customer,
               last.kind AS last_kind, last.credit AS last_credit, last.units AS last_units, last.is_erased,
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
    WHERE (t.is_acknowledged OR t.is_given_up) AND turn.reason IS NOT NULL AND turn.customer_id IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION ledger.mark_due(purchase_ids bigint[], subscription_ids bigint[]) RETURNS void
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
            SELECT o.order_id FROM ledger.purchase_order o WHERE o.purchase_id = (n.thing).purchase_id
            UNION ALL
            SELECT o.order_id FROM ledger.purchase_order o
            WHERE o.subscription_id = (n.thing).subscription_id AND o.period_id = (n.thing).period_id) o ON true
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
            WHERE d.order_id = i.id AND d.state <> 'due'
            ORDER BY d.turn DESC LIMIT 1) last) n
    WHERE o.order_id = n.order_id AND o.state <> n.state
$$;

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

CREATE OR REPLACE FUNCTION ledger.settle_deliveries(app_id int, ids bigint[], settler text, why text)
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

CREATE FUNCTION ledger.deliveries_in_doubt(purchase_ids bigint[], subscription_ids bigint[])
RETURNS TABLE (delivery_id bigint, purchase_id bigint, subscription_id bigint, doubt text)
LANGUAGE sql STABLE AS $$
    SELECT d.delivery_id, d.purchase_id, d.subscription_id,
           CASE said.times WHEN 0 THEN 'neither due nor acknowledged nor skipped' WHEN 1 THEN 'another one in the queue'
                ELSE 'more than one of due, acknowledged and skipped' END
    FROM (SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = ANY(purchase_ids)
          UNION ALL
          SELECT l.* FROM ledger.delivery l WHERE l.subscription_id = ANY(subscription_ids)) d
    LEFT JOIN LATERAL (
        SELECT q.* FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id OFFSET 0) q ON true
    CROSS JOIN LATERAL (
        SELECT (d.skip_reason IS NOT NULL)::int + (q.delivery_id IS NOT NULL)::int
               + (SELECT count(*) FROM ledger.acknowledgement k
                  WHERE k.hundred = d.delivery_id / 100 AND d.delivery_id = ANY(k.delivery_ids)) AS times OFFSET 0) said
    WHERE said.times <> 1
       OR q.delivery_id IS NOT NULL AND (q.app_id, q.environment, q.position, q.order_id)
          IS DISTINCT FROM (d.app_id, d.environment, d.position, d.order_id)
$$;
COMMENT ON FUNCTION ledger.deliveries_in_doubt IS
    'Deliveries of purchases and subscriptions that are not exactly one of due, acknowledged and skipped, or that '
    'have another app, environment, position or order in the queue';

CREATE OR REPLACE VIEW perennial.delivery_log AS
SELECT a.bundle_id, d.delivery_id::text AS delivery_id, d.position, head.name AS customer, d.environment::text AS environment,
       d.product_id, d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id,
       d.transaction_id, d.original_transaction_id, d.state::text AS state, d.created_at,
       CASE WHEN d.state = 'acknowledged' THEN d.settled_at END AS acknowledged_at,
       CASE WHEN d.state = 'acknowledged' THEN d.settled_by END AS acknowledged_by, d.skip_reason
FROM ledger.delivery_now d
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);

CREATE OR REPLACE VIEW perennial.credit_balance AS
SELECT a.bundle_id, head.name AS customer, d.environment::text AS environment, d.credit,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END) AS units
FROM ledger.delivery d
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.credit IS NOT NULL AND d.skip_reason IS NULL
  AND NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id)
GROUP BY a.bundle_id, head.name, d.environment, d.credit;

CREATE OR REPLACE VIEW perennial.delivery_due AS
SELECT a.bundle_id, d.delivery_id::text AS delivery_id, d.position, head.name AS customer, q.environment::text AS environment,
       d.product_id, d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id,
       d.transaction_id, d.original_transaction_id, d.created_at, (
           SELECT sum(CASE WHEN l.turn % 2 = 1 THEN l.units ELSE -l.units END)
           FROM ledger.delivery l
           WHERE l.customer_id IN (SELECT head.customer_id
                                   UNION ALL
                                   SELECT n.customer_id FROM ledger.customer n WHERE n.merged_into = head.customer_id)
             AND l.environment = d.environment AND l.credit = d.credit AND l.skip_reason IS NULL
             AND NOT EXISTS (SELECT FROM ledger.due_delivery o WHERE o.delivery_id = l.delivery_id)) AS balance
FROM ledger.due_delivery q
JOIN ledger.app a USING (app_id)
JOIN ledger.delivery d USING (delivery_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);

ALTER TABLE ledger.delivery
    DROP COLUMN state, DROP COLUMN settled_at, DROP COLUMN settled_by, DROP COLUMN changed_since;

-- Programs of before settle deliveries in columns that are gone.
UPDATE ledger.compatibility SET program_min = 35;
