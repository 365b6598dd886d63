-- Polling: returns the subscriptions among $1 that answers left out: whether the last one about the poller did; since when
-- and how often answers that hold purchases did after the newest answer that held it; and whether no receipt can say more,
-- because each other one that Apple vouches for left it out since, and no incident of the app is running. The subscriptions are locked,
-- so that no other transaction notes or clears it meanwhile.
SELECT s.subscription_id, bool_or(l.receipt_id IS NOT DISTINCT FROM s.polled_by) AS by_poller,
       min(l.omitted_at) FILTER (WHERE l.absences > 0 AND l.omitted_at > s.checked_at) AS absent_since,
       COALESCE(sum(l.absences) FILTER (WHERE l.omitted_at > s.checked_at), 0)::int AS absences,
       NOT EXISTS (
           SELECT FROM ledger.receipt_subscription o JOIN ledger.receipt r USING (receipt_id)
           WHERE o.subscription_id = s.subscription_id AND o.receipt_id IS DISTINCT FROM s.polled_by
             AND (o.omitted_at IS NULL OR o.omitted_at <= s.checked_at)
             AND r.verified_at IS NOT NULL AND r.erased_at IS NULL AND r.rejections < 3)
       AND NOT EXISTS (
           SELECT FROM ledger.incident i WHERE i.app_id = s.app_id AND i.closed_at IS NULL) AS everywhere
FROM ledger.subscription s
JOIN ledger.receipt_subscription l USING (subscription_id)
WHERE s.subscription_id = ANY($1::bigint[]) AND l.omitted_at IS NOT NULL
GROUP BY s.subscription_id
