-- A pause for a refused secret holds the checks of one environment; those of the other one are found without them.

ALTER TABLE ledger.poll_schedule ADD COLUMN is_sandbox boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN ledger.poll_schedule.is_sandbox IS
    'Whether the check asks the sandbox: by Apple''s word, before that by what the receipt says of itself';
UPDATE ledger.poll_schedule s SET is_sandbox = true
FROM ledger.receipt r WHERE r.receipt_id = s.receipt_id AND r.environment = 'Sandbox';

-- While production pauses, this finds the sandbox's due receipts behind any number of production's.
CREATE INDEX poll_schedule_sandbox ON ledger.poll_schedule (app_id, lane, due_at) WHERE is_sandbox;

DROP FUNCTION ledger.secret_pause(int);
CREATE FUNCTION ledger.secret_pause(app int, sandbox boolean) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT 'Apple refuses the shared secret (21004) in ' || t.environment
           || '; run `perennial app rotate-secret`. One receipt is tried every minute until Apple accepts it'
    FROM ledger.secret_trial t JOIN ledger.app a USING (app_id)
    WHERE t.app_id = app AND t.paused_since IS NOT NULL AND a.verifier = 'verify_receipt'
      AND t.environment = CASE WHEN sandbox THEN 'Sandbox' ELSE 'Production' END::ledger.environment
$$;
COMMENT ON FUNCTION ledger.secret_pause IS
    'Why scheduled checks of an app wait in the sandbox or in production, if Apple refuses its shared secret there and the '
    'app does not ask the Server API';

CREATE OR REPLACE VIEW perennial.receipt_now AS
SELECT r.receipt_id, a.bundle_id, r.environment::text AS environment,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY u.uploaded_at, c.name) AS customers,
       r.outcome::text AS outcome, r.reason, r.received_at, GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, r.rejections, r.rejected_since,
       GREATEST(s.due_at, s.scheduled_for) AS due_at, s.scheduled_for,
       s.lane::text AS lane, s.attempts, s.crashes,
       s.leased_by IS NOT NULL AS is_leased, s.leased_by IS NOT NULL AND s.due_at > now() AS is_in_flight,
       b.paused_until, CASE WHEN b.paused_until > now() THEN b.paused_because
           ELSE (SELECT 'Apple refuses the shared secret (21004)' FROM ledger.secret_trial t
                 WHERE t.app_id = r.app_id AND t.paused_since IS NOT NULL AND a.verifier = 'verify_receipt'
                   AND (t.environment = 'Sandbox') = COALESCE(s.is_sandbox, r.environment = 'Sandbox', false)) END AS paused_because
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.app_budget b USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id);
