-- Manual grants: locks the grants of customer $1, so that one operator at a time can change them. Merge and erase run
-- it too.
SELECT customer_id FROM ledger.customer WHERE customer_id = $1::bigint FOR NO KEY UPDATE
