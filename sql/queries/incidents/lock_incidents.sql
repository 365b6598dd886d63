-- Makes this transaction the only one that opens and closes incidents, or reports that another one is at work.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.watch_canaries')) AS locked
