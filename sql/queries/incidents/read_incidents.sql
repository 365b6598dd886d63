-- Settlement: returns which of the apps ($1) have a running incident because Apple refuses receipts in bulk.
SELECT i.app_id FROM ledger.incident i WHERE i.app_id = ANY($1::int[]) AND i.kind = 'refusals' AND i.closed_at IS NULL
