-- Returns the newest receipts, at most $3, of the customer whom account token $2 of app $1 names: by an order, else by the
-- customer's own name, through merges.
WITH named AS (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.customer c WHERE c.app_id = $1::int AND c.name IN (lower($2::text), upper($2::text))
    UNION
    SELECT COALESCE(c.merged_into, c.customer_id)
    FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
    WHERE o.app_id = $1::int AND o.app_account_token::text = lower($2::text)
)
SELECT u.receipt_id
FROM named JOIN ledger.upload u USING (customer_id) JOIN ledger.receipt r USING (receipt_id)
WHERE r.erased_at IS NULL AND r.verified_at IS NOT NULL
ORDER BY r.receipt_created_at DESC NULLS LAST, u.receipt_id DESC LIMIT $3::int
