-- Notifications that did not arrive, read from Apple's history of them.
ALTER TABLE ledger.notification
    ADD COLUMN source text NOT NULL DEFAULT 'push',
    ADD CONSTRAINT notification_source_known CHECK (source IN ('push', 'history'));
COMMENT ON COLUMN ledger.notification.source IS
    'How it came first: push, Apple sent it; history, a worker read it in Apple''s history';

CREATE OR REPLACE VIEW perennial.notification_log AS
SELECT n.notification_id, a.bundle_id, n.environment::text AS environment, n.received_at, n.kind, n.subkind,
       n.original_transaction_id, n.effect, n.check_at, n.source
FROM ledger.notification n LEFT JOIN ledger.app a USING (app_id);
COMMENT ON COLUMN perennial.notification_log.source IS
    'How it came first: push, Apple sent it; history, it was read in Apple''s history';

CREATE TABLE ledger.catch_up (
    app_id          int NOT NULL REFERENCES ledger.app,
    environment     ledger.environment NOT NULL,
    kind            text NOT NULL,
    complete_until  timestamptz NOT NULL,
    reads_from      timestamptz NOT NULL,
    reads_until     timestamptz,
    page            text,
    due_at          timestamptz NOT NULL DEFAULT now(),
    leased_by       int,
    failing_since   timestamptz,
    reason          text,
    PRIMARY KEY (app_id, environment, kind),
    CONSTRAINT catch_up_kind_known CHECK (kind IN ('everything', 'failures')),
    CONSTRAINT catch_up_reads_forward CHECK (reads_from <= reads_until),
    CONSTRAINT catch_up_page_is_of_a_stretch CHECK (page IS NULL OR reads_until IS NOT NULL),
    CONSTRAINT catch_up_says_why_it_fails CHECK ((failing_since IS NULL) = (reason IS NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE ledger.catch_up IS
    'How far Apple''s history of notifications was read, for each app with a server key. Stretch by stretch, page by page';
COMMENT ON COLUMN ledger.catch_up.kind IS
    'everything: all notifications, hourly; failures: those that Apple failed to deliver, daily';
COMMENT ON COLUMN ledger.catch_up.complete_until IS
    'Every notification that the history has from before is stored. It moves when all pages of a stretch are stored';
COMMENT ON COLUMN ledger.catch_up.reads_from IS 'Where the present or the next stretch begins';
COMMENT ON COLUMN ledger.catch_up.reads_until IS 'Where the present stretch ends; null: none is being read';
COMMENT ON COLUMN ledger.catch_up.page IS 'Apple''s token of the next page of the stretch; null: the first page';
COMMENT ON COLUMN ledger.catch_up.due_at IS 'When a worker reads on; while one does, when another one may take over';
COMMENT ON COLUMN ledger.catch_up.leased_by IS 'The worker that reads; null: none';
COMMENT ON COLUMN ledger.catch_up.reason IS 'Why the history could not be read the last time';
