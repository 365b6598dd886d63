-- Returns the migrations of this database, in order.
SELECT name, digest FROM ledger.migration ORDER BY number
