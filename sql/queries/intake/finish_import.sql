-- Ends the import $1. After bad lines no line stays marked, because a run after their correction must read them again.
-- Returns the number of its bad lines, in this run and in the runs it continued.
WITH finished AS (
    SELECT import_id, bad_lines FROM ledger.import WHERE import_id = $1::bigint FOR UPDATE
), forgotten AS (
    UPDATE ledger.import i SET stored_lines = '{}', stored_bytes = '{}', bad_lines = 0
    FROM finished f WHERE i.import_id = f.import_id AND f.bad_lines > 0
)
SELECT bad_lines FROM finished
