-- Begins or continues the import of a file: $1 name, $2 bytes, $3 digest of its edges; $4: from the start again.
INSERT INTO ledger.import AS i (file_name, file_bytes, edges) VALUES ($1::text, $2::bigint, $3::bytea)
ON CONFLICT (file_name, file_bytes, edges) DO UPDATE
SET stored_lines = CASE WHEN $4::boolean THEN '{}' ELSE i.stored_lines END,
    stored_bytes = CASE WHEN $4::boolean THEN '{}' ELSE i.stored_bytes END,
    bad_lines = CASE WHEN $4::boolean THEN 0 ELSE i.bad_lines END
RETURNING i.import_id, i.started_at, i.bad_lines,
    (SELECT upper(r) FROM unnest(i.stored_lines) r WHERE r @> 1::bigint) AS next_line,
    (SELECT upper(r) FROM unnest(i.stored_bytes) r WHERE r @> 0::bigint) AS next_byte
