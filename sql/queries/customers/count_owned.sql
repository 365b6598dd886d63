-- Customer: counts what customers ($1) own; repeated once everything is locked.
SELECT count(*) AS things FROM ledger.ownership o
WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
