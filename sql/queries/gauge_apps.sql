-- For metrics: each app's calls a second (0: any number) and calls left, whether and why often nothing is asked, incidents.
SELECT a.bundle_id, b.rate, b.tokens, b.failures, b.open_until > now() AS is_paused,
       EXISTS (SELECT FROM ledger.incident i WHERE i.app_id = a.app_id AND i.closed_at IS NULL) AS has_incident
FROM ledger.app a JOIN ledger.app_budget b USING (app_id)
ORDER BY a.bundle_id
