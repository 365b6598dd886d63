-- How far notifications are trusted to report refunds: what an app with sweep = auto found, and what follows from it.
ALTER TABLE ledger.app
    DROP CONSTRAINT app_sweep_known,
    ADD CONSTRAINT app_sweep_known CHECK (sweep IN ('normal', 'relaxed', 'auto'));
COMMENT ON COLUMN ledger.app.sweep IS
    'How often the worker looks for refunds: normal; relaxed, half as often; auto, as far as notifications proved '
    'reliable (ledger.sweep_trust)';

CREATE TABLE ledger.sweep_trust (
    app_id                int PRIMARY KEY REFERENCES ledger.app,
    factor                smallint NOT NULL DEFAULT 1,
    since                 timestamptz NOT NULL,
    all_swept_since       timestamptz,
    counted_until         timestamptz NOT NULL,
    reported              bigint NOT NULL DEFAULT 0,
    missed                bigint NOT NULL DEFAULT 0,
    lower_bound           float8 NOT NULL DEFAULT 0,
    last_notification_at  timestamptz,
    silence_longest_ms    bigint NOT NULL DEFAULT 0,
    is_silent             boolean NOT NULL DEFAULT true,
    recalled_to           bigint,
    recalled_factor       smallint,
    CONSTRAINT sweep_trust_factor_known CHECK (factor IN (1, 2, 4)),
    CONSTRAINT sweep_trust_all_or_control CHECK ((all_swept_since IS NULL) = (factor > 1)),
    CONSTRAINT sweep_trust_recall_is_whole CHECK ((recalled_to IS NULL) = (recalled_factor IS NULL))
);
COMMENT ON TABLE ledger.sweep_trust IS
    'What follows from the notifications of each app with sweep = auto; a worker judges it every few seconds';
COMMENT ON COLUMN ledger.sweep_trust.factor IS 'How many times as far apart the sweeps are, outside the control group';
COMMENT ON COLUMN ledger.sweep_trust.since IS 'When it began; refunds of before do not count';
COMMENT ON COLUMN ledger.sweep_trust.all_swept_since IS
    'Since when every receipt is swept as before, so that every refund counts; null: only the control group is';
COMMENT ON COLUMN ledger.sweep_trust.counted_until IS 'Refunds that were recorded until then are counted';
COMMENT ON COLUMN ledger.sweep_trust.reported IS 'Refunds that count and that a notification reported in time';
COMMENT ON COLUMN ledger.sweep_trust.missed IS 'Refunds that count and that none did';
COMMENT ON COLUMN ledger.sweep_trust.lower_bound IS 'The lower bound of the share of refunds that are reported in time';
COMMENT ON COLUMN ledger.sweep_trust.last_notification_at IS 'When the last verified notification came';
COMMENT ON COLUMN ledger.sweep_trust.silence_longest_ms IS 'After how many milliseconds of silence the factor is 1';
COMMENT ON COLUMN ledger.sweep_trust.is_silent IS 'Whether the silence is longer than that';
COMMENT ON COLUMN ledger.sweep_trust.recalled_to IS
    'The last receipt whose planned sweep was moved forward after the factor fell; null: nothing is left to move';
COMMENT ON COLUMN ledger.sweep_trust.recalled_factor IS 'The factor with which those sweeps were planned';

CREATE TABLE ledger.sweep_proof (
    app_id    int NOT NULL REFERENCES ledger.sweep_trust ON DELETE CASCADE,
    began_at  timestamptz NOT NULL,
    reported  bigint NOT NULL,
    missed    bigint NOT NULL,
    PRIMARY KEY (app_id, began_at)
);
COMMENT ON TABLE ledger.sweep_proof IS
    'Refunds of a day, by Apple''s clock, of receipts that were swept as before: those that a notification reported in '
    'time, and those that none did. Under a speed-up days are as much shorter';

CREATE INDEX event_of_refund ON ledger.event (app_id, recorded_at)
    WHERE environment = 'Production' AND kind IN ('refund.granted', 'family.revoked', 'purchase.refunded');
CREATE INDEX notification_verified ON ledger.notification (app_id, received_at) WHERE signed_at IS NOT NULL;
