-- Returns refunds and revocations of app $1 that were recorded after $2 and until $3, with the receipt that polls the
-- subscription or purchase, and whether a verified notification reported it within $4 milliseconds of Apple's instant.
SELECT e.occurred_at, COALESCE(s.polled_by, p.polled_by) AS receipt_id,
       EXISTS (
           SELECT FROM ledger.notification n
           WHERE n.app_id = e.app_id AND n.environment = e.environment AND n.signed_at IS NOT NULL
             AND n.original_transaction_id = COALESCE(s.original_transaction_id, p.original_transaction_id)
             AND n.kind IN ('REFUND', 'REVOKE') AND n.signed_at >= e.occurred_at
             AND n.received_at <= e.occurred_at + $4::bigint * interval '1 millisecond') AS is_reported
FROM ledger.event e
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
WHERE e.app_id = $1::int AND e.recorded_at > $2::timestamptz AND e.recorded_at <= $3::timestamptz
  AND e.environment = 'Production' AND e.kind IN ('refund.granted', 'family.revoked', 'purchase.refunded')
  AND COALESCE(s.polled_by, p.polled_by) IS NOT NULL
