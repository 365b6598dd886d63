-- Merge: moves the uploads and statements of customer $1 to customer $2; an upload of both becomes one upload.
WITH both_have AS (
    UPDATE ledger.upload u SET settled = u.settled AND f.settled
    FROM ledger.upload f
    WHERE u.customer_id = $2::bigint AND f.customer_id = $1::bigint AND f.receipt_id = u.receipt_id
    RETURNING u.receipt_id
), gone AS (
    DELETE FROM ledger.upload f
    WHERE f.customer_id = $1::bigint AND f.receipt_id IN (SELECT receipt_id FROM both_have)
), stated AS (
    UPDATE ledger.stated_price SET customer_id = $2::bigint WHERE customer_id = $1::bigint
), promised AS (
    INSERT INTO ledger.provisional (customer_id, receipt_id, product_id, stated_at, since, until, environment)
    SELECT DISTINCT ON (p.receipt_id, p.product_id) $2::bigint, p.receipt_id, p.product_id, clock_timestamp(), p.since, p.until,
           p.environment
    FROM ledger.provisional p JOIN ledger.receipt r USING (receipt_id)
    WHERE p.customer_id = $1::bigint AND r.first_verified_at IS NULL AND NOT EXISTS (
        SELECT FROM ledger.provisional q
        WHERE q.customer_id = $2::bigint AND q.receipt_id = p.receipt_id AND q.product_id = p.product_id
          AND q.until >= p.until)
    ORDER BY p.receipt_id, p.product_id, p.stated_at DESC
)
UPDATE ledger.upload u SET customer_id = $2::bigint, uploaded_as = COALESCE(u.uploaded_as, $1::bigint)
WHERE u.customer_id = $1::bigint AND NOT EXISTS (
    SELECT FROM ledger.upload i WHERE i.customer_id = $2::bigint AND i.receipt_id = u.receipt_id)
