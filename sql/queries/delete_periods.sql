-- Settlement: periods ($1) that turned out to be the same as another.
DELETE FROM ledger.period WHERE period_id = ANY($1::bigint[])
