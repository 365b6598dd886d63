-- Verify: stores the result of a full check, by invariant ($1): violations found ($2) and those of them repaired ($3).
INSERT INTO ledger.invariant AS i (name, violations, repaired, checked_at)
SELECT n.name, n.violations, n.repaired, now() FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n(name, violations, repaired)
ORDER BY n.name
ON CONFLICT (name) DO UPDATE
SET violations = EXCLUDED.violations, repaired = EXCLUDED.repaired, checked_at = EXCLUDED.checked_at
