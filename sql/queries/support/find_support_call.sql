-- Returns the newest support call of app $1 and environment $2 of kind $3 about $4 that asks $5. Of a consumption any, since
-- Apple takes one for each time it asks. is_over: a later call is another one, because Apple has asked anew.
SELECT c.request_id::text AS request_id, c.outcome, c.reason, c.code, c.extended_until, c.attempts, c.answered_at,
       c.asked_at > clock_timestamp() - interval '1 minute' AS is_recent,
       c.kind = 'consumption' AND c.outcome = 'done' AND EXISTS (
            SELECT FROM ledger.notification n
            WHERE n.kind = 'CONSUMPTION_REQUEST' AND n.signed_at > c.answered_at AND n.app_id = c.app_id
              AND n.environment = c.environment AND n.transaction_id = c.subject) AS is_over
FROM ledger.support_call c
WHERE c.app_id = $1::int AND c.environment = $2::text::ledger.environment AND c.kind = $3::text AND c.subject = $4::text
  AND (c.kind = 'consumption' OR c.request = $5::jsonb)
ORDER BY c.first_asked_at DESC LIMIT 1
