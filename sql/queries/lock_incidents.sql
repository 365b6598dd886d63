-- Makes the caller's transaction the only one that opens and closes incidents, or says that another one is at work.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.watch_canaries')) AS locked
