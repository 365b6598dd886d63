-- Verify: returns subscriptions after $1 up to $2 whose present timeline does not reach from their first period to
-- infinity without a gap or an overlap.
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       CASE WHEN t.spans = 0 THEN 'it has no present timeline'
            WHEN t.begins > s.started_at THEN 'its timeline begins after its first period'
            WHEN NOT t.is_endless THEN 'its timeline ends'
            ELSE 'its timeline has a gap or an overlap' END AS detail
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS spans, min(lower(o.valid)) AS begins, COALESCE(bool_or(upper_inf(o.valid)), false) AS is_endless,
           count(*) FILTER (WHERE lower(o.valid) IS DISTINCT FROM o.ended AND o.place > 1) AS tears
    FROM (
        SELECT p.valid, lag(upper(p.valid)) OVER spans AS ended, row_number() OVER spans AS place
        FROM ledger.subscription_span p
        WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known)
        WINDOW spans AS (ORDER BY lower(p.valid))) o) t
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0
  AND (t.spans = 0 OR t.begins > s.started_at OR NOT t.is_endless OR t.tears > 0)
ORDER BY s.subscription_id
