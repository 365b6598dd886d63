-- Incidents: returns the subscriptions and one-time purchases that receipts $1 hold and that no receipt polls, or only
-- one that cannot go on or whose last answer left the subscription out; locks nothing.
WITH held AS (
    SELECT s.subscription_id, NULL::bigint AS purchase_id, s.polled_by
    FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
    WHERE l.receipt_id = ANY($1::bigint[]) AND s.version > 0
    UNION
    SELECT NULL, p.purchase_id, p.polled_by
    FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
    WHERE l.receipt_id = ANY($1::bigint[]) AND p.version > 0
)
SELECT h.subscription_id, h.purchase_id
FROM held h
LEFT JOIN ledger.receipt r ON r.receipt_id = h.polled_by
LEFT JOIN ledger.poll_schedule s ON s.receipt_id = h.polled_by
WHERE r.receipt_id IS NULL OR NOT ledger.can_poll(r, s) OR EXISTS (
    SELECT FROM ledger.receipt_subscription l
    WHERE l.subscription_id = h.subscription_id AND l.receipt_id = h.polled_by AND l.omitted_at IS NOT NULL)
