-- Incidents: which refusals speak of Apple. Programs of before take every once-verified receipt for a canary.
ALTER TABLE ledger.refusal ADD COLUMN is_canary boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN ledger.refusal.is_canary IS
    'Of a once-verified receipt: whether its last answer was no refusal, and Apple vouched for it lately';
