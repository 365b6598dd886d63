-- Settlement: transaction ids ($2) seen for periods ($3) of subscriptions ($1).
INSERT INTO ledger.transaction_alias (subscription_id, transaction_id, period_id)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])
ON CONFLICT DO NOTHING
