-- Incidents of wrong clocks: answers of Apple's that are dated more than an hour ahead of the database's clock.
ALTER TABLE ledger.incident DROP CONSTRAINT incident_kind_known;
ALTER TABLE ledger.incident ADD CONSTRAINT incident_kind_known CHECK (kind IN ('refusals', 'clock'));
ALTER TABLE ledger.incident ADD COLUMN last_at timestamptz;
ALTER TABLE ledger.incident ADD CONSTRAINT incident_of_a_clock_has_a_last CHECK ((kind = 'clock') = (last_at IS NOT NULL));
COMMENT ON COLUMN ledger.incident.last_at IS 'Of kind clock: when the last answer came that was not believed';
COMMENT ON COLUMN ledger.incident.opened_at IS
    'When the first receipt was refused, or the first answer not believed; recognised_at: when that made an incident';
COMMENT ON COLUMN ledger.incident.refused IS
    'Of kind refusals: once-verified receipts that were refused; of kind clock: answers that were not believed';
