-- Lets one transaction at a time look for and store support calls of app $1.
SELECT pg_advisory_xact_lock(hashtext('ledger.support_call'), $1::int)
