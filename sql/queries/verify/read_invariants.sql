-- Status: returns the result of the last check of each invariant.
SELECT i.name, i.violations, i.repaired, i.checked_at FROM ledger.invariant i ORDER BY i.name
