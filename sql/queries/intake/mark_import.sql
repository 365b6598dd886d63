-- Marks a part of import $1 as stored, in the transaction that stores it: lines $2 to $3 and bytes $4 to $5, both ends
-- excluded, $6 of the lines bad.
UPDATE ledger.import
SET stored_lines = stored_lines + int8multirange(int8range($2::bigint, $3::bigint)),
    stored_bytes = stored_bytes + int8multirange(int8range($4::bigint, $5::bigint)),
    bad_lines = bad_lines + $6::bigint
WHERE import_id = $1::bigint
