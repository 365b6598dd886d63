-- What servers may remember of lookups: what an answer rests on, and, by transaction, what has changed.

-- Servers remember answers and ask before each use what has changed since they read them (docs/lookups.md). Both tables
-- are unlogged, because they serve running servers only: a crash empties them, and a server forgets everything when the
-- log is gone or is another one.
CREATE UNLOGGED TABLE ledger.right_change (
    xid                    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    customers              bigint[],
    subscriptions          bigint[],
    purchases              bigint[],
    checked_subscriptions  bigint[],
    checked_purchases      bigint[],
    as_ofs                 timestamptz[],
    checked_ats            timestamptz[]
);
CREATE INDEX right_change_by_transaction ON ledger.right_change (xid);
COMMENT ON TABLE ledger.right_change IS
    'One row per statement that changed something: a server reads the answers that rest on these things again once '
    'the transaction is committed, and all answers where the row names nothing';
COMMENT ON COLUMN ledger.right_change.xid IS 'The transaction of the statement';
COMMENT ON COLUMN ledger.right_change.checked_subscriptions IS
    'Subscriptions that only moved their clocks: a server writes the clocks into its answers and need not read them '
    'again';
COMMENT ON COLUMN ledger.right_change.checked_purchases IS 'The same of one-time purchases';
COMMENT ON COLUMN ledger.right_change.as_ofs IS
    'The new as_of of the checked subscriptions and then of the checked purchases, in order';
COMMENT ON COLUMN ledger.right_change.checked_ats IS 'Their new checked_at, in the same order';

CREATE UNLOGGED TABLE ledger.right_log (
    is_only          boolean PRIMARY KEY DEFAULT true,
    log_id           uuid NOT NULL DEFAULT gen_random_uuid(),
    forgotten_below  xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    forgets_next     xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    noted_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT right_log_is_only CHECK (is_only)
);
INSERT INTO ledger.right_log DEFAULT VALUES;
COMMENT ON TABLE ledger.right_log IS 'The log of changes, one row, or none after a crash';
COMMENT ON COLUMN ledger.right_log.forgotten_below IS 'Changes of transactions before this one are deleted';
COMMENT ON COLUMN ledger.right_log.forgets_next IS
    'Changes of transactions before this one are deleted next, a minute after noted_at';

CREATE FUNCTION ledger.prune_right_log() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    due ledger.right_log;
BEGIN
    DELETE FROM ledger.right_log l
    WHERE l.forgets_next > pg_snapshot_xmax(pg_current_snapshot())
       OR EXISTS (SELECT FROM ledger.right_change c WHERE c.xid >= pg_snapshot_xmax(pg_current_snapshot()));
    IF FOUND THEN DELETE FROM ledger.right_change; END IF;
    INSERT INTO ledger.right_log DEFAULT VALUES ON CONFLICT DO NOTHING;
    SELECT l.* INTO due FROM ledger.right_log l
    WHERE l.noted_at < now() - interval '1 minute' FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    DELETE FROM ledger.right_change c WHERE c.xid < due.forgets_next;
    UPDATE ledger.right_log
    SET forgotten_below = due.forgets_next, forgets_next = pg_snapshot_xmin(pg_current_snapshot()), noted_at = now();
END
$$;
REVOKE EXECUTE ON FUNCTION ledger.prune_right_log() FROM PUBLIC;
COMMENT ON FUNCTION ledger.prune_right_log IS
    'Begins a log where there is none, or only that of another cluster, whose transactions this one has yet to '
    'reach; deletes changes that no server which asks every minute needs. One caller at a time does so';

-- The functions below write the log. They run as their owner, so that a role that may change entitlements needs no
-- right on the log and cannot keep a change from it. The transition table "changed" has the changed rows, and "before"
-- has the old ones.
CREATE FUNCTION ledger.note_customers() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (customers)
    SELECT array_agg(DISTINCT c.customer_id) FROM changed c HAVING count(*) > 0;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION ledger.note_customers IS 'Notes the customers of the changed rows';

CREATE FUNCTION ledger.note_subscriptions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (subscriptions)
    SELECT array_agg(DISTINCT c.subscription_id) FROM changed c HAVING count(*) > 0;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION ledger.note_subscriptions IS 'Notes the subscriptions of the changed rows';

CREATE FUNCTION ledger.note_checked_subscriptions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (subscriptions, checked_subscriptions, as_ofs, checked_ats)
    SELECT array_agg(c.subscription_id) FILTER (WHERE NOT o.only_clocks),
           array_agg(c.subscription_id) FILTER (WHERE o.only_clocks),
           array_agg(c.as_of) FILTER (WHERE o.only_clocks), array_agg(c.checked_at) FILTER (WHERE o.only_clocks)
    FROM changed c
    JOIN before b USING (subscription_id)
    CROSS JOIN LATERAL (
        SELECT (c.app_id, c.environment, c.expires_at) IS NOT DISTINCT FROM (b.app_id, b.environment, b.expires_at)
               AND num_nulls(c.as_of, c.checked_at) = 0 AS only_clocks) o
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION ledger.note_checked_subscriptions IS
    'Notes updated subscriptions, with the clocks alone where nothing else changed. Entitlements rest on app_id, '
    'environment, expires_at and the clocks of the row; changes of its spans are noted apart';

CREATE FUNCTION ledger.note_checked_purchases() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (purchases, checked_purchases, as_ofs, checked_ats)
    SELECT array_agg(c.purchase_id) FILTER (WHERE NOT o.only_clocks),
           array_agg(c.purchase_id) FILTER (WHERE o.only_clocks),
           array_agg(c.as_of) FILTER (WHERE o.only_clocks), array_agg(c.checked_at) FILTER (WHERE o.only_clocks)
    FROM changed c
    JOIN before b USING (purchase_id)
    CROSS JOIN LATERAL (
        SELECT (c.app_id, c.environment, c.product_id, c.purchased_at, c.revoked_at, c.first_recorded_at,
                c.facts_recorded_at)
               IS NOT DISTINCT FROM
               (b.app_id, b.environment, b.product_id, b.purchased_at, b.revoked_at, b.first_recorded_at,
                b.facts_recorded_at)
               AND num_nulls(c.as_of, c.checked_at) = 0 AS only_clocks) o
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION ledger.note_checked_purchases IS
    'Notes updated one-time purchases, with the clocks alone where nothing else changed';

CREATE FUNCTION ledger.note_customers_of_receipt() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (customers)
    SELECT array_agg(DISTINCT p.customer_id) FROM ledger.provisional p WHERE p.receipt_id = NEW.receipt_id
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION ledger.note_customers_of_receipt IS
    'Notes the customers with a provisional entitlement of a receipt, which ends with the receipt''s first verified '
    'answer';

CREATE FUNCTION ledger.note_everybody() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change DEFAULT VALUES;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION ledger.note_everybody IS 'Notes a change that may concern every customer';

-- A new subscription or purchase has no owner yet, and no answer rests on a new customer: these inserts need no note.
CREATE TRIGGER rights_noted_on_insert AFTER INSERT ON ledger.ownership REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.ownership REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_delete AFTER DELETE ON ledger.ownership REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_insert AFTER INSERT ON ledger.manual_grant REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.manual_grant REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_delete AFTER DELETE ON ledger.manual_grant REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_insert AFTER INSERT ON ledger.provisional REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.provisional REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_delete AFTER DELETE ON ledger.provisional REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_insert AFTER INSERT ON ledger.customer_merge REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.customer_merge REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_delete AFTER DELETE ON ledger.customer_merge REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.customer REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_delete AFTER DELETE ON ledger.customer REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_customers();
CREATE TRIGGER rights_noted_on_insert AFTER INSERT ON ledger.subscription_span REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_subscriptions();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.subscription_span REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_subscriptions();
CREATE TRIGGER rights_noted_on_delete AFTER DELETE ON ledger.subscription_span REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_subscriptions();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.subscription
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_checked_subscriptions();
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.purchase
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_checked_purchases();
CREATE TRIGGER rights_noted_on_verification AFTER UPDATE OF first_verified_at ON ledger.receipt
    FOR EACH ROW WHEN (OLD.first_verified_at IS DISTINCT FROM NEW.first_verified_at)
    EXECUTE FUNCTION ledger.note_customers_of_receipt();
CREATE TRIGGER rights_noted AFTER INSERT OR UPDATE OR DELETE ON ledger.catalog_grant
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_everybody();
CREATE TRIGGER rights_noted AFTER UPDATE OF bundle_id ON ledger.app
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_everybody();

CREATE FUNCTION ledger.right_basis(customer_ids bigint[])
RETURNS TABLE (
    customer_id bigint, customers bigint[], subscriptions bigint[], purchases bigint[], lasts_until timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off
AS $$
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
            SELECT lower(s.valid) AS starts, s.allowed_until AS ends FROM ledger.subscription_span s
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
        SELECT h.customer_id, lower(h.valid), upper(h.valid) FROM ledger.manual_grant h
        WHERE h.customer_id = ANY(ARRAY(SELECT w.whose FROM who w)) AND upper_inf(h.known)
    ), changing AS (
        SELECT b.customer_id, LEAST(
            min(b.starts) FILTER (WHERE b.starts > now()), min(b.ends) FILTER (WHERE b.ends > now())) AS changes
        FROM boundary b GROUP BY b.customer_id
    ), things AS (
        SELECT o.customer_id,
               array_agg(DISTINCT o.subscription_id) FILTER (WHERE o.subscription_id IS NOT NULL) AS subscriptions,
               array_agg(DISTINCT o.purchase_id) FILTER (WHERE o.purchase_id IS NOT NULL) AS purchases
        FROM owned o GROUP BY o.customer_id
    )
    SELECT w.customer_id, ARRAY[w.customer_id, w.whose], COALESCE(t.subscriptions, '{}'), COALESCE(t.purchases, '{}'),
           LEAST(
               w.changes, c.changes,
               (SELECT min(lower(g.valid)) FROM ledger.catalog_grant g
                WHERE upper_inf(g.known) AND lower(g.valid) > now()),
               (SELECT min(upper(g.valid)) FROM ledger.catalog_grant g
                WHERE upper_inf(g.known) AND upper(g.valid) > now()))
    FROM who w
    LEFT JOIN things t ON t.customer_id = w.whose
    LEFT JOIN changing c ON c.customer_id = w.whose;
END
$$;
REVOKE EXECUTE ON FUNCTION ledger.right_basis(bigint[]) FROM PUBLIC;
COMMENT ON FUNCTION ledger.right_basis IS
    'What answers about customers rest on now: the customers themselves and those whose name they share, what these '
    'own or will own, and until when time alone does not change the answer (lasts_until null: never). It finds each '
    'step as ledger.right_source does';
