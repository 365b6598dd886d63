-- Grants by hand, step 1: lets one person at a time change what customer $1 has.
SELECT customer_id FROM ledger.customer WHERE customer_id = $1::bigint FOR NO KEY UPDATE
