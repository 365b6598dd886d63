-- Erase: skips what customers ($1) were still to get, at $2. What they got stays, so that another upload gives nothing.
UPDATE ledger.delivery d
SET state = 'skipped', settled_at = $2::timestamptz, settled_by = 'perennial', skip_reason = 'erased'
WHERE d.customer_id = ANY($1::bigint[]) AND d.state = 'due'
