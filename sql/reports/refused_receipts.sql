-- Receipts that Apple refuses, and those that are suspect because of it
-- Variables: bundle_id.
-- refused: Apple answered that it does not vouch for the receipt, and never did. suspect: it had vouched for the
-- receipt before. Access goes on, because only three refusals over 72 hours retire a receipt, and even that ends no
-- access by itself. subscriptions counts those in the receipt. bundle_id filters; is_retired: the receipt is no longer
-- checked.
\if :{?bundle_id} \else \set bundle_id '' \endif
SELECT CASE WHEN r.verified_at IS NULL THEN 'refused' ELSE 'suspect' END AS verdict, r.bundle_id, r.environment, r.receipt_id,
       array_to_string(r.customers, ', ') AS customers, r.reason, r.rejections, r.rejected_since, r.asked_at, r.verified_at,
       count(DISTINCT u.original_transaction_id) AS subscriptions, r.due_at, r.due_at IS NULL AS is_retired
FROM perennial.receipt_now r
LEFT JOIN perennial.upload_log u USING (receipt_id)
WHERE r.outcome = 'rejected' AND (:'bundle_id' = '' OR r.bundle_id = perennial.known_app(:'bundle_id'))
GROUP BY r.verified_at, r.bundle_id, r.environment, r.receipt_id, r.customers, r.reason, r.rejections, r.rejected_since,
         r.asked_at, r.due_at
ORDER BY verdict DESC, r.rejected_since, r.receipt_id;
