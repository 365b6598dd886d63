-- Notes where the Server API's histories of receipts ($1) are read on: at revisions $2.
UPDATE ledger.receipt r SET history_revision = n.revision
FROM unnest($1::bigint[], $2::text[]) AS n (receipt_id, revision)
WHERE r.receipt_id = n.receipt_id
