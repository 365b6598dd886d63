-- Returns incidents that run or ended within 24 hours, newest first.
SELECT a.bundle_id, i.kind, i.opened_at, i.closed_at, i.asked, i.refused, i.last_reason
FROM ledger.incident i JOIN ledger.app a USING (app_id)
WHERE i.closed_at IS NULL OR i.closed_at > now() - interval '24 hours'
ORDER BY i.incident_id DESC
