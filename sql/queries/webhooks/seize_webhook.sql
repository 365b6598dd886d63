-- Takes webhook $1 from its worker before a change by hand: whatever the worker has under way is refused. Returns its fence.
UPDATE ledger.webhook w SET fence = w.fence + 1, lease_until = '-infinity' WHERE w.webhook_id = $1::int
RETURNING w.fence, w.position, (SELECT a.bundle_id FROM ledger.app a WHERE a.app_id = w.app_id) AS bundle_id
