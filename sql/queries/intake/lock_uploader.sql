-- Intake: makes the new receipts of customer $1 wait for each other until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('ledger.new_receipts'), ($1::bigint % 2147483647)::int)
