-- Lookups' log of changes: what came with a restored database is begun anew where its transactions are numbered otherwise.

-- Begins a log where there is none or only that of another cluster, whose transactions this one has yet to reach, and removes
-- what nobody who asks every minute needs any more; one caller at a time.
CREATE OR REPLACE FUNCTION ledger.tend_right_log() RETURNS void
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
