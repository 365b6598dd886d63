-- Polling: returns the subscriptions among $1 that the last answer about their poller left out. The subscriptions are
-- locked, so that no other transaction notes or clears it meanwhile.
SELECT s.subscription_id
FROM ledger.subscription s
JOIN ledger.receipt_subscription l ON l.subscription_id = s.subscription_id AND l.receipt_id = s.polled_by
WHERE s.subscription_id = ANY($1::bigint[]) AND l.omitted_at IS NOT NULL
