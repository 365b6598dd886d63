-- Makes this transaction the only one that judges notifications, or reports that another one is at work.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.judge_sweeps')) AS locked
