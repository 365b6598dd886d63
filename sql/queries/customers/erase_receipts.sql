-- Erase: empties receipts ($1) at $2 beyond recognition; the rows stay for the records that refer to them.
WITH unasked AS (
    DELETE FROM ledger.poll_schedule s WHERE s.receipt_id = ANY($1::bigint[])
), unrefused AS (
    DELETE FROM ledger.refusal f WHERE f.receipt_id = ANY($1::bigint[])
), silenced AS (
    UPDATE ledger.observation o SET body = NULL, meaning = '' WHERE o.receipt_id = ANY($1::bigint[])
)
UPDATE ledger.receipt r
SET data = '', latest_receipt = NULL, digest = sha256(gen_random_uuid()::text::bytea), meaning = NULL, reason = NULL,
    transaction_id = NULL, history_revision = NULL, erased_at = $2::timestamptz
WHERE r.receipt_id = ANY($1::bigint[])
