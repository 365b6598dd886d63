-- Polling: moves the clocks of equal answers from the schedule rows of receipts ($1), which are locked, to what these
-- receipts poll, to the receipts, which are locked too, and to their last observations. It runs before anything else
-- reads or changes these. It may collide with a change of owners, which locks no schedule row; both are then repeated.
WITH poller AS MATERIALIZED (
    SELECT * FROM ledger.poll_schedule WHERE receipt_id = ANY($1::bigint[]) AND confirmed_at IS NOT NULL
), subscription AS MATERIALIZED (
    SELECT s.subscription_id, poller.receipt_id
    FROM poller JOIN ledger.subscription s ON s.polled_by = poller.receipt_id
    WHERE s.checked_at < poller.confirmed_at
    ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
    FOR NO KEY UPDATE OF s
), purchase AS MATERIALIZED (
    SELECT p.purchase_id, poller.receipt_id
    FROM poller JOIN ledger.purchase p ON p.polled_by = poller.receipt_id
    WHERE p.checked_at < poller.confirmed_at
    ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
    FOR NO KEY UPDATE OF p
), subscribed AS (
    UPDATE ledger.subscription s
    SET as_of = ledger.as_of(s, poller), checked_at = ledger.checked_at(s, poller),
        renewal_as_of = ledger.renewal_as_of(s, poller), next_check_at = ledger.next_check_at(s, poller)
    FROM subscription n JOIN ledger.poll_schedule poller USING (receipt_id)
    WHERE s.subscription_id = n.subscription_id
), bought AS (
    UPDATE ledger.purchase p
    SET as_of = ledger.as_of(p, poller), checked_at = ledger.checked_at(p, poller),
        next_check_at = ledger.next_check_at(p, poller)
    FROM purchase n JOIN ledger.poll_schedule poller USING (receipt_id)
    WHERE p.purchase_id = n.purchase_id
), receipt AS (
    UPDATE ledger.receipt r
    SET asked_at = GREATEST(r.asked_at, poller.confirmed_at), verified_at = GREATEST(r.verified_at, poller.confirmed_at)
    FROM poller WHERE r.receipt_id = poller.receipt_id AND r.verified_at < poller.confirmed_at
)
UPDATE ledger.observation o
SET last_as_of = poller.confirmed_as_of
FROM poller JOIN ledger.receipt r USING (receipt_id)
WHERE o.observation_id = r.observation_id AND o.recorded_at = r.observed_at AND o.last_as_of < poller.confirmed_as_of
