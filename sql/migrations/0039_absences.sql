-- Outage allowances end where Apple's answers stop naming a subscription: how often they did is counted.

ALTER TABLE ledger.receipt_subscription
    ADD COLUMN absences smallint NOT NULL DEFAULT 0,
    ADD CONSTRAINT receipt_subscription_absences_are_omissions CHECK (absences = 0 OR omitted_at IS NOT NULL);
COMMENT ON COLUMN ledger.receipt_subscription.absences IS
    'How many verified answers that hold purchases left the subscription out since an answer last held it, up to three; '
    'omitted_at is the time of the first of them';
