-- Lookups: begins the log of changed entitlements where there is none, and deletes rows that no server needs now.
SELECT ledger.prune_right_log()
