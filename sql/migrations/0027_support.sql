-- Support calls: what people asked Apple to change, each with the identifier under which a repetition is the same request.
CREATE TABLE ledger.support_call (
    request_id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    app_id          int NOT NULL REFERENCES ledger.app,
    environment     ledger.environment NOT NULL,
    kind            text NOT NULL,
    subject         text NOT NULL,
    request         jsonb,
    outcome         text NOT NULL DEFAULT 'sent',
    reason          text,
    code            int,
    extended_until  timestamptz,
    attempts        int NOT NULL DEFAULT 1,
    first_asked_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    asked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at     timestamptz,
    CONSTRAINT support_call_kind_known CHECK (kind IN ('extend', 'extend_all', 'consumption', 'account_token')),
    CONSTRAINT support_call_outcome_known CHECK (outcome IN ('sent', 'done', 'refused', 'failed', 'withheld')),
    CONSTRAINT support_call_is_answered_once CHECK ((outcome = 'sent') = (answered_at IS NULL))
);
CREATE INDEX support_call_of_subject ON ledger.support_call (app_id, subject, kind, first_asked_at);
CREATE INDEX support_call_asked ON ledger.support_call (asked_at);
COMMENT ON TABLE ledger.support_call IS
    'Support calls that change something at Apple''s, stored before they are made. ledger.audit has who made them, with '
    'the same request_id; both are kept as long';
COMMENT ON COLUMN ledger.support_call.request_id IS
    'The identifier of the request. A repetition has the same; Apple gets it with an extension';
COMMENT ON COLUMN ledger.support_call.kind IS
    'extend: one subscription; extend_all: all subscriptions of a product; consumption; account_token';
COMMENT ON COLUMN ledger.support_call.subject IS
    'What it is about: an original transaction id; of a consumption a transaction id; of extend_all a product';
COMMENT ON COLUMN ledger.support_call.request IS
    'What is asked, in Apple''s words; null: removed with the customer, or nothing was to be sent';
COMMENT ON COLUMN ledger.support_call.outcome IS
    'sent: no answer is known yet; done; refused: Apple did not do it; failed: nothing is known of it; withheld: the '
    'customer did not consent, so nothing was sent';
COMMENT ON COLUMN ledger.support_call.reason IS 'Why it was refused or failed';
COMMENT ON COLUMN ledger.support_call.code IS 'Apple''s error code; null: none';
COMMENT ON COLUMN ledger.support_call.extended_until IS 'When an extended subscription ends now, as Apple said';
COMMENT ON COLUMN ledger.support_call.attempts IS 'How often it was sent';
COMMENT ON COLUMN ledger.support_call.asked_at IS 'When it was sent last';
COMMENT ON COLUMN ledger.support_call.answered_at IS 'When its outcome was stored';

CREATE VIEW perennial.support_log AS
SELECT c.request_id::text AS request_id, a.bundle_id, c.environment::text AS environment, c.kind, c.subject, c.request,
       c.outcome, c.reason, c.code, c.extended_until, c.attempts, c.first_asked_at, c.asked_at, c.answered_at
FROM ledger.support_call c JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.support_log IS
    'What people asked Apple to change, and what came of it. audit_log has who asked, by detail ->> ''request_id''';
COMMENT ON COLUMN perennial.support_log.request_id IS 'The identifier of the request; a repetition has the same';
COMMENT ON COLUMN perennial.support_log.bundle_id IS 'Apple''s bundle id of the app';
COMMENT ON COLUMN perennial.support_log.environment IS 'Production or Sandbox';
COMMENT ON COLUMN perennial.support_log.kind IS 'extend, extend_all, consumption or account_token';
COMMENT ON COLUMN perennial.support_log.subject IS
    'What it is about: an original transaction id; of a consumption a transaction id; of extend_all a product';
COMMENT ON COLUMN perennial.support_log.request IS
    'What is asked, in Apple''s words; null: removed with the customer, or nothing was to be sent';
COMMENT ON COLUMN perennial.support_log.outcome IS
    'sent (no answer is known yet), done, refused, failed, or withheld (the customer did not consent; nothing was sent)';
COMMENT ON COLUMN perennial.support_log.reason IS 'Why it was refused or failed; null: neither';
COMMENT ON COLUMN perennial.support_log.code IS 'Apple''s error code; null: none';
COMMENT ON COLUMN perennial.support_log.extended_until IS 'When an extended subscription ends now, as Apple said';
COMMENT ON COLUMN perennial.support_log.attempts IS 'How often it was sent';
COMMENT ON COLUMN perennial.support_log.first_asked_at IS 'When it was sent first';
COMMENT ON COLUMN perennial.support_log.asked_at IS 'When it was sent last';
COMMENT ON COLUMN perennial.support_log.answered_at IS 'When its outcome was stored; null: sent';

ALTER TABLE ledger.notification ADD COLUMN transaction_id text;
COMMENT ON COLUMN ledger.notification.transaction_id IS
    'The transaction that a verified one holds; a CONSUMPTION_REQUEST is answered by it';
CREATE INDEX notification_of_consumption ON ledger.notification (signed_at) WHERE kind = 'CONSUMPTION_REQUEST';
