-- Returns whether this database was ever migrated.
SELECT to_regclass('ledger.migration') IS NOT NULL AS migrated
