-- Every app with its settings, sealed secrets and budget.
SELECT a.app_id, a.bundle_id, a.name, a.sealed_secret, a.sealed_previous_secret, a.sandbox_allowed,
       a.ownership_policy::text AS ownership_policy, a.leeway_ms, a.sandbox_leeway_ms, a.outage_allowance_ms,
       a.sweep, a.notification_digest IS NOT NULL AS takes_notifications,
       b.rate, b.burst, CASE WHEN b.open_until > now() THEN b.open_until END AS paused_until, b.open_reason
FROM ledger.app a JOIN ledger.app_budget b USING (app_id)
ORDER BY a.bundle_id
