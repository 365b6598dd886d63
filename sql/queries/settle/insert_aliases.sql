-- Settlement: inserts transaction ids ($2) seen for periods ($1).
INSERT INTO ledger.transaction_alias (period_id, transaction_id)
SELECT * FROM unnest($1::bigint[], $2::text[])
ON CONFLICT DO NOTHING
