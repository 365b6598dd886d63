-- Rebuild: deletes the transaction ids of periods ($1), which are then written anew.
DELETE FROM ledger.transaction_alias WHERE period_id = ANY($1::bigint[])
