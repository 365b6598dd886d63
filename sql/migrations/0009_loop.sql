-- Lanes by urgency, receipts that crash workers kept apart, equal answers settled cheaply, and apps whose answers fail.
ALTER TABLE ledger.poll_schedule DROP CONSTRAINT poll_schedule_lane_known;
UPDATE ledger.poll_schedule SET lane = 4 WHERE lane = 2;
ALTER TABLE ledger.poll_schedule
    ADD CONSTRAINT poll_schedule_lane_known CHECK (lane BETWEEN 0 AND 5),
    ADD COLUMN fingerprint bytea,
    ADD COLUMN confirmed_as_of timestamptz,
    ADD COLUMN confirmed_at timestamptz,
    ADD COLUMN purchases bigint[],
    ADD COLUMN purchase_versions bigint,
    ADD CONSTRAINT poll_schedule_purchases_have_versions CHECK ((purchases IS NULL) = (purchase_versions IS NULL)),
    ADD CONSTRAINT poll_schedule_confirmed_has_both_clocks
        CHECK ((confirmed_as_of IS NULL) = (confirmed_at IS NULL));
COMMENT ON COLUMN ledger.poll_schedule.lane IS
    '0 new: never verified; 1 edge: an access decision is near; 2 retry: Apple tries to charge; 3 import: never verified, nobody waits; 4 sweep: the rest; 5 quarantine: its workers crashed';
COMMENT ON COLUMN ledger.poll_schedule.fingerprint IS
    'Of the last verified answer without its clocks, and of the rules it was read by; null: the next answer is read in full';
COMMENT ON COLUMN ledger.poll_schedule.purchases IS
    'The one-time purchases that the fingerprinted answer told of; null: none';
COMMENT ON COLUMN ledger.poll_schedule.purchase_versions IS
    'Their versions at that time, added up: the same sum means that none of them changed since';
COMMENT ON COLUMN ledger.poll_schedule.confirmed_as_of IS
    'Apple''s clock of the newest answer equal to the last observation, not yet written there';

ALTER TABLE ledger.subscription
    ADD COLUMN answered_by bigint, ADD COLUMN access_ends_at timestamptz, ADD COLUMN renewal_expected boolean;
COMMENT ON COLUMN ledger.subscription.answered_by IS
    'The receipt whose answer spoke last; an equal answer about another receipt may say something new';
COMMENT ON COLUMN ledger.subscription.access_ends_at IS 'When access ends if nothing more is learnt, as of as_of';

-- Aliases are found by their period, whose key leads; whose subscription it is, the period says.
ALTER TABLE ledger.transaction_alias
    DROP CONSTRAINT transaction_alias_pkey, DROP COLUMN subscription_id, ADD PRIMARY KEY (period_id, transaction_id);

-- Receipts do not compress, so that trying to is time lost.
ALTER TABLE ledger.receipt ALTER COLUMN data SET STORAGE EXTERNAL, ALTER COLUMN latest_receipt SET STORAGE EXTERNAL;

ALTER TABLE ledger.app_budget ADD COLUMN failures smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN ledger.app_budget.failures IS 'Rounds of answers in a row that mostly failed; above 0 only a few receipts are tried';

-- Equal answers are not counted any more, only their newest clock is kept.
ALTER TABLE ledger.observation DROP COLUMN answers;
