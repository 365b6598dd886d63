-- Leases one receipt at once, due or not: worker $1, lease seconds $2, receipt $3; nothing while another worker has a
-- lease, unless that one is gone and it is the first lease that a process left behind. A lease of the worker itself is left over from an interrupted check, because it runs one check of a receipt at
-- a time.
WITH leased AS (
    INSERT INTO ledger.poll_schedule AS s
        (receipt_id, app_id, lane, due_at, scheduled_for, lease_token, leased_by, attempts, is_sandbox)
    SELECT r.receipt_id, r.app_id, 'expiring', now() + make_interval(secs => $2::float8), now(),
           nextval('ledger.lease_token_seq'), $1::int, 1, r.environment IS NOT DISTINCT FROM 'Sandbox'
    FROM ledger.receipt r WHERE r.receipt_id = $3::bigint AND r.erased_at IS NULL
    ON CONFLICT (receipt_id) DO UPDATE
    SET due_at = now() + make_interval(secs => $2::float8),
        lease_token = EXCLUDED.lease_token,
        leased_by = $1::int,
        crashes = CASE WHEN s.leased_by <> $1::int THEN LEAST(s.crashes + 1, 32000) ELSE s.crashes END,
        attempts = LEAST(s.attempts + 1, 32000),
        scheduled_for = LEAST(s.scheduled_for, CASE WHEN s.want_at <= now() THEN s.want_at END),
        want_at = CASE WHEN s.want_at > now() THEN s.want_at END
    WHERE s.leased_by IS NULL OR s.leased_by = $1::int OR s.due_at <= now()
       OR s.crashes = 0 AND EXISTS (
           SELECT FROM ledger.worker w WHERE w.worker_id = s.leased_by AND ledger.gone_at(w) <= now())
    RETURNING s.receipt_id, s.app_id, s.lane, s.lease_token, s.attempts, s.scheduled_for, s.fingerprint,
              s.meaning, s.polled
)
SELECT l.receipt_id, l.app_id, l.lane::text AS lane, l.lease_token, l.attempts, l.scheduled_for, now() AS due_at,
       l.fingerprint, l.meaning, l.polled,
       now() AS claimed_at,
       r.form::text AS form, r.vouched, r.transaction_id, r.history_revision,
       r.environment::text AS environment, l.attempts % 2 = 1 AND r.latest_receipt IS NOT NULL AS asks_latest,
       CASE WHEN l.attempts % 2 = 1 THEN COALESCE(r.latest_receipt, r.data) ELSE r.data END AS data
FROM leased l JOIN ledger.receipt r USING (receipt_id)
