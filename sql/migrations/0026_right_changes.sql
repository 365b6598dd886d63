-- What lookups may remember: what an answer about rights rests on, and, by transaction, which of that has changed.

-- Servers remember answers, and ask before each use what has changed since they were read; docs/lookups.md tells how. A
-- row, one for each statement that changed something, says that answers which rest on these things, or all answers where it
-- names nothing, are to be read again once its transaction is committed. Unlogged, for it speaks only to servers that run: a
-- crash empties both tables, and servers forget everything when the log is gone or another one.
CREATE UNLOGGED TABLE ledger.right_change (
    xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
    customers      bigint[],
    subscriptions  bigint[],
    purchases      bigint[]
);
CREATE INDEX right_change_by_transaction ON ledger.right_change (xid);

-- Rows of transactions before forgotten_below are removed; those before forgets_next are, a while after noted_at.
CREATE UNLOGGED TABLE ledger.right_log (
    is_only          boolean PRIMARY KEY DEFAULT true,
    log_id           uuid NOT NULL DEFAULT gen_random_uuid(),
    forgotten_below  xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    forgets_next     xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    noted_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT right_log_is_only CHECK (is_only)
);
INSERT INTO ledger.right_log DEFAULT VALUES;

-- Begins a log where there is none, and removes what nobody who asks every minute needs any more; one caller at a time.
CREATE FUNCTION ledger.tend_right_log() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    due ledger.right_log;
BEGIN
    INSERT INTO ledger.right_log DEFAULT VALUES ON CONFLICT DO NOTHING;
    SELECT l.* INTO due FROM ledger.right_log l
    WHERE l.noted_at < now() - interval '1 minute' FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    DELETE FROM ledger.right_change c WHERE c.xid < due.forgets_next;
    UPDATE ledger.right_log
    SET forgotten_below = due.forgets_next, forgets_next = pg_snapshot_xmin(pg_current_snapshot()), noted_at = now();
END
$$;
REVOKE EXECUTE ON FUNCTION ledger.tend_right_log() FROM PUBLIC;

-- One function for each kind of thing; the rows that changed are the transition table "changed". They run as their owner,
-- so that whoever may change rights needs no right on the log, and cannot keep a change from it.
CREATE FUNCTION ledger.note_customers() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (customers)
    SELECT array_agg(DISTINCT c.customer_id) FROM changed c HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION ledger.note_subscriptions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (subscriptions)
    SELECT array_agg(DISTINCT c.subscription_id) FROM changed c HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION ledger.note_purchases() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (purchases)
    SELECT array_agg(DISTINCT c.purchase_id) FROM changed c HAVING count(*) > 0;
    RETURN NULL;
END
$$;

-- What the operator said of a receipt ends with its first verified answer.
CREATE FUNCTION ledger.note_customers_of_receipt() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (customers)
    SELECT array_agg(DISTINCT p.customer_id) FROM ledger.provisional p WHERE p.receipt_id = NEW.receipt_id
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION ledger.note_everybody() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change DEFAULT VALUES;
    RETURN NULL;
END
$$;

-- A thing that is new belongs to nobody yet, and nobody's answer rests on a customer who is new.
DO $$
DECLARE noted record;
BEGIN
    FOR noted IN
        SELECT * FROM (VALUES
            ('ownership', ARRAY['INSERT', 'UPDATE', 'DELETE'], 'note_customers'),
            ('hand_grant', ARRAY['INSERT', 'UPDATE', 'DELETE'], 'note_customers'),
            ('provisional', ARRAY['INSERT', 'UPDATE', 'DELETE'], 'note_customers'),
            ('customer_merge', ARRAY['INSERT', 'UPDATE', 'DELETE'], 'note_customers'),
            ('customer', ARRAY['UPDATE', 'DELETE'], 'note_customers'),
            ('subscription', ARRAY['UPDATE'], 'note_subscriptions'),
            ('subscription_span', ARRAY['INSERT', 'UPDATE', 'DELETE'], 'note_subscriptions'),
            ('purchase', ARRAY['UPDATE'], 'note_purchases')) AS n(name, events, function),
            unnest(n.events) AS e(event)
    LOOP
        EXECUTE format(
            'CREATE TRIGGER %I AFTER %s ON ledger.%I REFERENCING %s TABLE AS changed
             FOR EACH STATEMENT EXECUTE FUNCTION ledger.%I()',
            'rights_noted_on_' || lower(noted.event), noted.event, noted.name,
            CASE noted.event WHEN 'DELETE' THEN 'OLD' ELSE 'NEW' END, noted.function);
    END LOOP;
END $$;
CREATE TRIGGER rights_noted_on_verification AFTER UPDATE OF first_verified_at ON ledger.receipt
    FOR EACH ROW WHEN (OLD.first_verified_at IS DISTINCT FROM NEW.first_verified_at)
    EXECUTE FUNCTION ledger.note_customers_of_receipt();
CREATE TRIGGER rights_noted AFTER INSERT OR UPDATE OR DELETE ON ledger.catalog_grant
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_everybody();
CREATE TRIGGER rights_noted AFTER UPDATE OF bundle_id ON ledger.app
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_everybody();

-- Found at once: the next instant at which the catalog says something else by itself.
CREATE INDEX catalog_grant_begins ON ledger.catalog_grant (lower(valid)) WHERE upper_inf(known);
CREATE INDEX catalog_grant_ends ON ledger.catalog_grant (upper(valid)) WHERE upper_inf(known);

-- What answers about customers rest on now: themselves and whose name theirs is, what they own or will, and until when
-- time alone does not make it another answer (null: never). Each step is found as in ledger.right_source.
CREATE FUNCTION ledger.right_basis(customer_ids bigint[])
RETURNS TABLE (
    customer_id bigint, customers bigint[], subscriptions bigint[], purchases bigint[], lasts_until timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH who AS MATERIALIZED (
        SELECT n.customer_id, COALESCE(m.into_id, n.customer_id) AS whose, m.changes
        FROM unnest(customer_ids) AS n(customer_id)
        CROSS JOIN LATERAL (
            SELECT max(m.into_id) FILTER (WHERE m.applies @> now()) AS into_id,
                   min(b.at) FILTER (WHERE b.at > now()) AS changes
            FROM ledger.customer_merge m CROSS JOIN unnest(ARRAY[lower(m.applies), upper(m.applies)]) AS b(at)
            WHERE m.customer_id = n.customer_id OFFSET 0) m
    ), owned AS MATERIALIZED (
        SELECT o.* FROM ledger.ownership o
        WHERE o.customer_id = ANY(ARRAY(SELECT w.whose FROM who w)) AND upper_inf(o.known)
    ), boundary AS (
        SELECT o.customer_id, lower(o.valid) AS starts, upper(o.valid) AS ends FROM owned o
        UNION ALL
        SELECT o.customer_id, s.starts, s.ends FROM owned o
        CROSS JOIN LATERAL (
            SELECT lower(s.valid) AS starts, s.held_until AS ends FROM ledger.subscription_span s
            WHERE s.subscription_id = o.subscription_id AND upper_inf(s.known) OFFSET 0) s
        UNION ALL
        SELECT o.customer_id, p.starts, p.ends FROM owned o
        CROSS JOIN LATERAL (
            SELECT p.purchased_at AS starts, p.revoked_at AS ends FROM ledger.purchase p
            WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        UNION ALL
        SELECT p.customer_id, p.since, p.until FROM ledger.provisional p
        WHERE p.customer_id = ANY(ARRAY(SELECT w.whose FROM who w))
        UNION ALL
        SELECT h.customer_id, lower(h.valid), upper(h.valid) FROM ledger.hand_grant h
        WHERE h.customer_id = ANY(ARRAY(SELECT w.whose FROM who w)) AND upper_inf(h.known)
    ), changing AS (
        SELECT b.customer_id, LEAST(
            min(b.starts) FILTER (WHERE b.starts > now()), min(b.ends) FILTER (WHERE b.ends > now())) AS changes
        FROM boundary b GROUP BY b.customer_id
    ), things AS (
        SELECT o.customer_id, array_agg(DISTINCT o.subscription_id) FILTER (WHERE o.subscription_id IS NOT NULL) AS subscriptions,
               array_agg(DISTINCT o.purchase_id) FILTER (WHERE o.purchase_id IS NOT NULL) AS purchases
        FROM owned o GROUP BY o.customer_id
    )
    SELECT w.customer_id, ARRAY[w.customer_id, w.whose], COALESCE(t.subscriptions, '{}'), COALESCE(t.purchases, '{}'),
           LEAST(
               w.changes, c.changes,
               (SELECT min(lower(g.valid)) FROM ledger.catalog_grant g WHERE upper_inf(g.known) AND lower(g.valid) > now()),
               (SELECT min(upper(g.valid)) FROM ledger.catalog_grant g WHERE upper_inf(g.known) AND upper(g.valid) > now()))
    FROM who w
    LEFT JOIN things t ON t.customer_id = w.whose
    LEFT JOIN changing c ON c.customer_id = w.whose;
END
$$;
REVOKE EXECUTE ON FUNCTION ledger.right_basis(bigint[]) FROM PUBLIC;
