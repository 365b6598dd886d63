-- Coverage: whatever has a next check has a receipt that asks, one-time purchases too; what answers leave out is remembered.
ALTER TABLE ledger.purchase
    ADD COLUMN polled_by bigint REFERENCES ledger.receipt,
    ADD COLUMN next_check_at timestamptz,
    ADD CONSTRAINT purchase_next_check_has_poller CHECK (next_check_at IS NULL OR polled_by IS NOT NULL);
CREATE INDEX purchase_polled_by ON ledger.purchase (polled_by);
COMMENT ON COLUMN ledger.purchase.polled_by IS 'The receipt that is asked about it';
COMMENT ON COLUMN ledger.purchase.next_check_at IS 'When the next look for a refund is due; null: none is';

UPDATE ledger.subscription SET next_check_at = NULL WHERE polled_by IS NULL AND next_check_at IS NOT NULL;
ALTER TABLE ledger.subscription
    ADD CONSTRAINT subscription_next_check_has_poller CHECK (next_check_at IS NULL OR polled_by IS NOT NULL);

ALTER TABLE ledger.receipt_subscription ADD COLUMN omitted_at timestamptz;
ALTER TABLE ledger.receipt_purchase ADD COLUMN omitted_at timestamptz;
COMMENT ON COLUMN ledger.receipt_subscription.omitted_at IS
    'When a verified answer about the receipt left the subscription out although the receipt polled it; null: not since it was last held';
COMMENT ON COLUMN ledger.receipt_purchase.omitted_at IS
    'When a verified answer about the receipt left the purchase out although the receipt polled it; null: not since it was last held';

ALTER TABLE ledger.poll_schedule ADD COLUMN backs_off boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN ledger.poll_schedule.backs_off IS
    'The last answer vouched for nothing, so due_at follows the back-off and may be later than what the receipt polls wants';

-- Whether a receipt may ask about what it holds: Apple vouched for it, did not refuse it since, answered one of the last five
-- calls, and no worker crashes on it. Swift knows the same five as SettlementRun.fruitlessAttemptsMax.
CREATE FUNCTION ledger.can_poll(r ledger.receipt, s ledger.poll_schedule)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.verified_at IS NOT NULL AND r.rejections = 0 AND r.erased_at IS NULL
       AND COALESCE(s.lane, 0) <> 5 AND COALESCE(s.attempts, 0) < 5
$$;

-- The newest receipt that may ask is the poller of what was bought already; the first worker plans when to ask.
UPDATE ledger.purchase p
SET polled_by = newest.receipt_id,
    next_check_at = CASE WHEN p.environment = 'Production' AND p.purchased_at > now() - interval '90 days' THEN now() END
FROM (
    SELECT DISTINCT ON (l.purchase_id) l.purchase_id, l.receipt_id
    FROM ledger.receipt_purchase l
    JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    WHERE ledger.can_poll(r, s)
    ORDER BY l.purchase_id, r.receipt_created_at DESC NULLS LAST, l.receipt_id DESC) newest
WHERE p.purchase_id = newest.purchase_id AND p.version > 0;
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT DISTINCT r.receipt_id, r.app_id, 4, now(), now()
FROM ledger.purchase p JOIN ledger.receipt r ON r.receipt_id = p.polled_by
WHERE p.next_check_at IS NOT NULL
ON CONFLICT DO NOTHING;

-- An older program names no poller for what it sees.
UPDATE ledger.compatibility SET program_min = 29;
