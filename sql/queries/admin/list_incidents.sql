-- Returns incidents, running ones first, then the newest, at most $1.
SELECT a.bundle_id, i.kind, i.opened_at, i.closed_at, i.asked, i.refused, i.last_reason
FROM ledger.incident i JOIN ledger.app a USING (app_id)
ORDER BY i.closed_at IS NOT NULL, i.incident_id DESC LIMIT $1::int
