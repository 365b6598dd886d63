-- Makes this transaction the only sequencer of the feed, or reports that another one is at work.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.sequence_feed')) AS locked
