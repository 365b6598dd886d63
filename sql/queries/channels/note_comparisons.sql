-- Notes that both channels were asked about the subscriptions that receipts $1 poll, and which subscriptions were
-- compared: apps $2, environments $3, original transactions $4.
INSERT INTO ledger.channel_comparison AS c (subscription_id, tried_at, compared_at)
SELECT s.subscription_id, now(), CASE WHEN k.id IS NOT NULL THEN now() END
FROM ledger.subscription s
LEFT JOIN (SELECT DISTINCT k.app_id, k.environment::ledger.environment AS environment, k.id
           FROM unnest($2::int[], $3::text[], $4::text[]) AS k (app_id, environment, id)) k
       ON k.app_id = s.app_id AND k.environment = s.environment AND k.id = s.original_transaction_id
WHERE s.polled_by = ANY($1::bigint[])
ORDER BY s.subscription_id
ON CONFLICT (subscription_id) DO UPDATE
SET tried_at = EXCLUDED.tried_at, compared_at = COALESCE(EXCLUDED.compared_at, c.compared_at)
