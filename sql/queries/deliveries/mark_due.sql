-- Deliveries: marks what is due of one-time purchases ($1) and subscriptions ($2), which this transaction has locked. It
-- waits for those that are being acknowledged, and none of them is until this transaction ends.
SELECT FROM (SELECT ledger.mark_due($1::bigint[], $2::bigint[])) AS marked
