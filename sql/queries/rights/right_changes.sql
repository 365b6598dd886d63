-- Lookups: returns which answers must be read again since an earlier look ($1 its log, $2 its snapshot; null: the first
-- look), at most $3 rows of each kind, where null means everything; also this look itself. No row: caching is
-- impossible.
SELECT now() AS now, l.log, pg_current_snapshot()::text AS snapshot,
       COALESCE(l.log = $1::text AND l.forgotten_below <= pg_snapshot_xmin($2::text::pg_snapshot), false) AS follows,
       c.is_noted, c.customers, c.subscriptions, c.purchases, c.checked_subscriptions, c.checked_purchases, c.as_ofs, c.checked_ats
FROM (SELECT concat_ws('/', r.log_id, 'ledger.right_change'::regclass::oid, pg_postmaster_start_time()) AS log,
             r.forgotten_below
      FROM ledger.right_log r) l
LEFT JOIN LATERAL (
    (SELECT true AS is_noted, c.* FROM ledger.right_change c
     WHERE c.xid >= pg_snapshot_xmax($2::text::pg_snapshot) ORDER BY c.xid LIMIT $3::bigint)
    UNION ALL
    -- The transactions that were in progress then.
    (SELECT true, c.* FROM ledger.right_change c
     WHERE c.xid = ANY(ARRAY(SELECT pg_snapshot_xip($2::text::pg_snapshot))) ORDER BY c.xid LIMIT $3::bigint)
) c ON true
