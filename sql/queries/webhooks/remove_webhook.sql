-- Removes webhook $1 with what waits for it.
DELETE FROM ledger.webhook w WHERE w.webhook_id = $1::int
