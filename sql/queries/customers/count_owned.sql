-- Customer: counts what customers ($1) own and the receipts they uploaded; repeated once everything is locked.
SELECT (SELECT count(*) FROM ledger.ownership o
        WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)) AS things,
       (SELECT count(DISTINCT u.receipt_id) FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])) AS receipts
