-- Ends the import $1: with bad lines nothing stays marked, for a run after the mistake is mended must read them again.
-- Answers how many of its lines were bad, in this run and in the runs it went on from.
WITH finished AS (
    SELECT import_id, bad_lines FROM ledger.import WHERE import_id = $1::bigint FOR UPDATE
), forgotten AS (
    UPDATE ledger.import i SET stored_lines = '{}', stored_bytes = '{}', bad_lines = 0
    FROM finished f WHERE i.import_id = f.import_id AND f.bad_lines > 0
)
SELECT bad_lines FROM finished
