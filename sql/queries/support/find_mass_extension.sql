-- Returns the identifier of the newest extension of all subscriptions of product $3 that was sent for app $1 in environment $2.
SELECT c.request_id::text AS request_id
FROM ledger.support_call c
WHERE c.app_id = $1::int AND c.environment = $2::text::ledger.environment AND c.kind = 'extend_all'
  AND c.subject = $3::text
ORDER BY c.first_asked_at DESC LIMIT 1
