-- Lookups: begins the log of changed rights where there is none, and removes what no server needs any more.
SELECT ledger.tend_right_log()
