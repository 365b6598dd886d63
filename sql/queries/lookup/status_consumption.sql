-- Returns transactions whose consumption Apple has asked about without an answer since: for more than $1 hours, at most $2
-- days; the longest waiting first, at most $3.
SELECT a.bundle_id, n.environment::text AS environment, n.transaction_id, min(n.signed_at) AS asked_at
FROM ledger.notification n JOIN ledger.app a USING (app_id)
WHERE n.kind = 'CONSUMPTION_REQUEST'
  AND n.signed_at BETWEEN now() - make_interval(days => $2::int) AND now() - make_interval(hours => $1::int)
  AND n.transaction_id IS NOT NULL AND num_nonnulls(n.texts, n.claims) > 0
  AND NOT EXISTS (
        SELECT FROM ledger.support_call c
        WHERE c.app_id = n.app_id AND c.subject = n.transaction_id AND c.kind = 'consumption'
          AND c.environment = n.environment AND c.outcome IN ('done', 'withheld') AND c.answered_at >= n.signed_at)
GROUP BY a.bundle_id, n.environment, n.transaction_id
ORDER BY min(n.signed_at), a.bundle_id LIMIT $3::int
