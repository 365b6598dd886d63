-- Settlement: which of the apps ($1) have a running incident.
SELECT i.app_id FROM ledger.incident i WHERE i.app_id = ANY($1::int[]) AND i.closed_at IS NULL
