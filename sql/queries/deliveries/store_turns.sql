-- Deliveries: stores the turns that one-time purchases ($1) and subscriptions ($2) need now; this transaction has them
-- locked.
SELECT ledger.store_turns($1::bigint[], $2::bigint[]) AS turns
