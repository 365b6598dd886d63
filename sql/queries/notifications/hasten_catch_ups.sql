-- Catch-up: has the histories that no worker reads be read now, because a worker starts.
UPDATE ledger.catch_up SET due_at = now() WHERE leased_by IS NULL AND kind = 'everything' AND due_at > now()
