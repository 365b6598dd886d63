-- Deliveries: keeps settlements from changing one-time purchases ($1) and subscriptions ($2) until this transaction ends.
SELECT FROM (SELECT ledger.share_delivered($1::bigint[], $2::bigint[])) AS shared
