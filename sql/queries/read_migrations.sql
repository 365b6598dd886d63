-- The migrations this database has, in order.
SELECT name, digest FROM ledger.migration ORDER BY number
