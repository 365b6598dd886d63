-- A refused server key pauses the calls of the Server API in its environment, not the app.

ALTER TABLE ledger.call_budget ADD COLUMN refused_because text;
COMMENT ON COLUMN ledger.call_budget.refused_because IS
    'Why Apple refuses the app''s server key, for the pause until paused_until; null: it asked for fewer requests';
COMMENT ON COLUMN ledger.call_budget.paused_until IS
    'No call is made until then: Apple asked for it with Retry-After, or refused the server key';

CREATE OR REPLACE FUNCTION ledger.secret_pause(app int, sandbox boolean) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT 'Apple refuses the shared secret (21004) in ' || t.environment
           || '; run `perennial app rotate-secret`. One receipt is tried every minute until Apple accepts it'
    FROM ledger.secret_trial t JOIN ledger.app a USING (app_id)
    WHERE t.app_id = app AND t.paused_since IS NOT NULL AND a.verifier = 'verify_receipt'
      AND t.environment = CASE WHEN sandbox THEN 'Sandbox' ELSE 'Production' END::ledger.environment
    UNION ALL
    SELECT COALESCE(max(b.refused_because), 'Apple asks for fewer requests') FROM ledger.call_budget b JOIN ledger.app a USING (app_id)
    WHERE b.app_id = app AND b.endpoint IN ('statuses', 'history') AND b.paused_until > now() AND a.verifier = 'server_api'
      AND b.environment = CASE WHEN sandbox THEN 'Sandbox' ELSE 'Production' END::ledger.environment
    HAVING count(*) > 0
$$;
COMMENT ON FUNCTION ledger.secret_pause IS
    'Why scheduled checks of an app wait in the sandbox or in production: Apple refuses its shared secret there, and the app does '
    'not ask the Server API; or calls of the Server API are paused there, and the app asks nothing else';

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
           ELSE COALESCE(
               (SELECT 'Apple refuses the shared secret (21004)' FROM ledger.secret_trial t
                WHERE t.app_id = r.app_id AND t.paused_since IS NOT NULL AND a.verifier = 'verify_receipt'
                  AND (t.environment = 'Sandbox') = COALESCE(s.is_sandbox, r.environment = 'Sandbox', false)),
               (SELECT max(COALESCE(c.refused_because, 'Apple asks for fewer requests')) FROM ledger.call_budget c
                WHERE c.app_id = r.app_id AND c.endpoint IN ('statuses', 'history') AND c.paused_until > now()
                  AND a.verifier = 'server_api'
                  AND (c.environment = 'Sandbox') = COALESCE(s.is_sandbox, r.environment = 'Sandbox', false))) END AS paused_because
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.app_budget b USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id);
