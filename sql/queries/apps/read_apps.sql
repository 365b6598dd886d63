-- Returns every app that was not removed, with its settings, sealed secrets, server key and budget; an app pauses for its own reasons
-- or because Apple does not respond at all. Calls of the Server API pause in each environment on their own.
SELECT a.app_id, a.bundle_id, a.name, a.sealed_secret, a.sealed_previous_secret, a.sandbox_allowed,
       a.ownership_policy::text AS ownership_policy, a.leeway_ms, a.sandbox_leeway_ms, a.outage_allowance_ms,
       a.pre_check_spread_ms, a.sweep, a.notification_digest IS NOT NULL AS takes_notifications,
       k.key_id AS offer_key_id, k.issuer_id AS offer_issuer_id,
       a.verifier, a.apple_app_id, v.key_id AS server_key_id, v.issuer_id AS server_issuer_id, v.sealed_key AS sealed_server_key,
       b.rate, b.burst, b.slowed_to, b.slowed_at, b.failures, GREATEST(b.paused_until, 'epoch') AS app_paused_until,
       now() AS at, g.failures AS apple_failures,
       CASE WHEN GREATEST(b.paused_until, g.paused_until) > now() THEN GREATEST(b.paused_until, g.paused_until) END AS paused_until,
       CASE WHEN b.paused_until >= g.paused_until THEN b.paused_because ELSE g.paused_because END AS paused_because,
       CASE WHEN p.paused_since IS NOT NULL THEN GREATEST(p.try_at, now()) END AS production_tried_at,
       CASE WHEN x.paused_since IS NOT NULL THEN GREATEST(x.try_at, now()) END AS sandbox_tried_at,
       CASE WHEN p.refused_at IS NOT NULL AND p.paused_since IS NULL
                 AND (p.is_untold OR COALESCE(p.proved_at, x.proved_at, x.paused_since) IS NULL)
            THEN cardinality(p.refused_receipts) END AS production_doubted_by,
       CASE WHEN x.refused_at IS NOT NULL AND x.paused_since IS NULL
                 AND (x.is_untold OR COALESCE(x.proved_at, p.proved_at, p.paused_since) IS NULL)
            THEN cardinality(x.refused_receipts) END AS sandbox_doubted_by,
       calls.production_until, calls.production_because, calls.sandbox_until, calls.sandbox_because
FROM ledger.app a JOIN ledger.app_budget b USING (app_id) CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.offer_key k USING (app_id)
LEFT JOIN ledger.server_key v USING (app_id)
LEFT JOIN ledger.secret_trial p ON p.app_id = a.app_id AND p.environment = 'Production'
LEFT JOIN ledger.secret_trial x ON x.app_id = a.app_id AND x.environment = 'Sandbox'
CROSS JOIN LATERAL (
    SELECT max(c.paused_until) FILTER (WHERE c.environment = 'Production') AS production_until,
           max(c.refused_because) FILTER (WHERE c.environment = 'Production') AS production_because,
           max(c.paused_until) FILTER (WHERE c.environment = 'Sandbox') AS sandbox_until,
           max(c.refused_because) FILTER (WHERE c.environment = 'Sandbox') AS sandbox_because
    FROM ledger.call_budget c
    WHERE c.app_id = a.app_id AND c.endpoint IN ('statuses', 'history') AND c.paused_until > now()) calls
WHERE a.removed_at IS NULL
ORDER BY a.bundle_id
