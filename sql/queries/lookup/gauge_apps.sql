-- For metrics: each app's present calls a second (0: unlimited) and calls left, whether checks are paused in production and
-- in the sandbox, incidents, and the claims that are not read.
SELECT a.bundle_id, ledger.calls_a_second(b.rate, b.slowed_to, b.slowed_at, now()) AS rate, b.tokens, b.failures,
       GREATEST(b.paused_until, g.paused_until) > now() OR ledger.secret_pause(a.app_id, false) IS NOT NULL AS production_paused,
       GREATEST(b.paused_until, g.paused_until) > now() OR ledger.secret_pause(a.app_id, true) IS NOT NULL AS sandbox_paused,
       EXISTS (SELECT FROM ledger.incident i WHERE i.app_id = a.app_id AND i.closed_at IS NULL) AS has_incident,
       (SELECT count(*) FROM ledger.unread_claim u WHERE u.app_id = a.app_id) AS unread_claims
FROM ledger.app a JOIN ledger.app_budget b USING (app_id) CROSS JOIN ledger.apple_breaker g
ORDER BY a.bundle_id
