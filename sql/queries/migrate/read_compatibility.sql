-- Returns how many migrations a program must know, at least, to work with this database.
SELECT program_min FROM ledger.compatibility
