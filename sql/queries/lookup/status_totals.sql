-- Returns the totals: receipts by verification, subscriptions, events, and the time of the newest verified answer. With
-- more than $1 receipts the numbers of receipts and subscriptions are the planner's estimates, and the time is exact to
-- a minute.
WITH size AS MATERIALIZED (
    SELECT c.relname, c.reltuples, c.reltuples > $1::bigint AS is_large
    FROM pg_class c WHERE c.oid IN ('ledger.receipt'::regclass, 'ledger.subscription'::regclass)
), receipts AS MATERIALIZED (
    SELECT size.reltuples::bigint AS receipts,
           round(size.reltuples * (
               SELECT s.null_frac FROM pg_stats s
               WHERE s.schemaname = 'ledger' AND s.tablename = 'receipt' AND s.attname = 'verified_at'))::bigint AS unverified,
           round(size.reltuples * COALESCE((
               SELECT f.part FROM pg_stats s
               CROSS JOIN unnest(s.most_common_vals::text::text[], s.most_common_freqs) AS f(value, part)
               WHERE s.schemaname = 'ledger' AND s.tablename = 'receipt' AND s.attname = 'outcome'
                 AND f.value = 'rejected'), 0))::bigint AS rejected
    FROM size WHERE size.relname = 'receipt' AND size.is_large
    UNION ALL
    SELECT count(*), count(*) FILTER (WHERE r.verified_at IS NULL), count(*) FILTER (WHERE r.outcome = 'rejected')
    FROM ledger.receipt r
    WHERE NOT (SELECT size.is_large FROM size WHERE size.relname = 'receipt')
    LIMIT 1
), subscriptions AS MATERIALIZED (
    SELECT size.reltuples::bigint AS subscriptions,
           (SELECT max(v.minute) FROM ledger.verified_minute v) AS last_checked_at
    FROM size WHERE size.relname = 'subscription' AND size.is_large
    UNION ALL
    SELECT count(*) FILTER (WHERE s.version > 0), max(ledger.checked_at(s, poller))
    FROM ledger.subscription s LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
    WHERE NOT (SELECT size.is_large FROM size WHERE size.relname = 'subscription')
    LIMIT 1
)
SELECT r.receipts, r.receipts - r.unverified AS verified, r.unverified, r.rejected, s.subscriptions, s.last_checked_at,
       (SELECT bool_or(size.is_large) FROM size) AS estimated,
       (SELECT count(*) FROM (SELECT FROM ledger.event_outbox LIMIT $1::bigint) o) AS unsequenced,
       (SELECT p.rounds > 0 FROM ledger.summary_progress p) AS is_summarised,
       f.feed_id, f.position, f.former_id, f.renewed_at, f.place LIKE 'cluster unknown,%' AS is_anywhere,
       (SELECT count(*) FROM ledger.worker WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes') AS workers
FROM receipts r CROSS JOIN subscriptions s CROSS JOIN ledger.feed_here f
