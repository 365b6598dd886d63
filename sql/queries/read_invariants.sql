-- Status: what was found when each invariant was looked at last.
SELECT i.name, i.violations, i.repaired, i.checked_at FROM ledger.invariant i ORDER BY i.name
