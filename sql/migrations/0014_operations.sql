-- Workers, imports, incidents, invariants, corrections, and which programs may use the schema.
CREATE TABLE ledger.compatibility (
    is_only      boolean PRIMARY KEY DEFAULT true,
    program_min  int NOT NULL,
    CONSTRAINT compatibility_is_one CHECK (is_only)
);
INSERT INTO ledger.compatibility (program_min) VALUES (22);
COMMENT ON TABLE ledger.compatibility IS
    'Which programs work with the schema, one row. A migration that only adds leaves it unchanged. A migration that '
    'removes or changes what earlier programs use sets program_min to its own number, and they are refused from '
    'then on';
COMMENT ON COLUMN ledger.compatibility.program_min IS
    'How many migrations a program must know, at least, to work with this schema';

CREATE TABLE ledger.worker (
    worker_id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host           text NOT NULL,
    pid            int NOT NULL,
    lease_seconds  double precision,
    speedup        int,
    started_at     timestamptz NOT NULL DEFAULT now(),
    heartbeat_at   timestamptz NOT NULL DEFAULT now(),
    stopped_at     timestamptz,
    CONSTRAINT worker_lease_is_some_time CHECK (lease_seconds > 0),
    CONSTRAINT worker_speedup_is_at_least_one CHECK (speedup >= 1)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ledger.worker IS 'The processes that ask Apple';
COMMENT ON COLUMN ledger.worker.lease_seconds IS
    'How long a claim of this worker lasts, before crashes make it longer; null: the program did not report it';
COMMENT ON COLUMN ledger.worker.speedup IS 'The factor by which this worker divides every delay of the schedule';

CREATE TABLE ledger.import (
    import_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_name     text NOT NULL,
    file_bytes    bigint NOT NULL,
    edges         bytea NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    stored_lines  int8multirange NOT NULL DEFAULT '{}',
    stored_bytes  int8multirange NOT NULL DEFAULT '{}',
    bad_lines     bigint NOT NULL DEFAULT 0,
    CONSTRAINT import_file_unique UNIQUE (file_name, file_bytes, edges),
    CONSTRAINT import_edges_are_sha256 CHECK (length(edges) = 32),
    CONSTRAINT import_stores_what_there_is
        CHECK (stored_bytes <@ int8range(0, file_bytes, '[]') AND bad_lines >= 0)
) WITH (fillfactor = 50);
COMMENT ON TABLE ledger.import IS
    'How far each imported file is. The transaction that stores a part marks it; parts are stored side by side. '
    'Name, size, first and last megabyte identify a file';
COMMENT ON COLUMN ledger.import.edges IS 'SHA-256 of the first and the last megabyte';
COMMENT ON COLUMN ledger.import.stored_lines IS
    'The lines that are stored; the range that holds line 1 is stored without a gap from the start';
COMMENT ON COLUMN ledger.import.stored_bytes IS 'The bytes of these lines';

CREATE TABLE ledger.incident (
    incident_id    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id         int NOT NULL REFERENCES ledger.app,
    kind           text NOT NULL,
    opened_at      timestamptz NOT NULL,
    recognised_at  timestamptz NOT NULL,
    last_at        timestamptz,
    closed_at      timestamptz,
    asked          bigint NOT NULL,
    refused        bigint NOT NULL,
    last_reason    text NOT NULL,
    CONSTRAINT incident_kind_known CHECK (kind IN ('refusals', 'clock')),
    CONSTRAINT incident_clocks_are_in_order CHECK (opened_at <= recognised_at AND recognised_at <= closed_at),
    CONSTRAINT incident_refused_were_asked CHECK (0 <= refused AND refused <= asked),
    CONSTRAINT incident_of_a_clock_has_a_last CHECK ((kind = 'clock') = (last_at IS NOT NULL))
);
CREATE UNIQUE INDEX incident_running ON ledger.incident (app_id, kind) WHERE closed_at IS NULL;
COMMENT ON TABLE ledger.incident IS 'Times at which the fault is not the receipts''';
COMMENT ON COLUMN ledger.incident.kind IS
    'refusals: Apple refuses many once-verified receipts of an app at once; clock: answers are dated more than an '
    'hour ahead of the database''s clock';
COMMENT ON COLUMN ledger.incident.opened_at IS
    'When the first receipt was refused, or the first answer not believed';
COMMENT ON COLUMN ledger.incident.recognised_at IS 'When refusals or wrong dates became an incident';
COMMENT ON COLUMN ledger.incident.last_at IS 'Of kind clock: when the last answer came that was not believed';
COMMENT ON COLUMN ledger.incident.asked IS
    'Answers about once-verified receipts since opened_at; a receipt that is refused again counts once';
COMMENT ON COLUMN ledger.incident.refused IS
    'Of kind refusals: once-verified receipts that were refused; of kind clock: answers that were not believed';

CREATE TABLE ledger.refusal (
    receipt_id         bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    app_id             int NOT NULL,
    refused_at         timestamptz NOT NULL,
    once_verified      boolean NOT NULL,
    is_canary          boolean NOT NULL DEFAULT true,
    counts             boolean NOT NULL,
    rejections_before  smallint NOT NULL,
    reason             text NOT NULL
);
CREATE INDEX refusal_of_app ON ledger.refusal (app_id, refused_at);
COMMENT ON TABLE ledger.refusal IS
    'Receipts that Apple refused lately, the first refusal of each: for ten minutes, or until the end of an incident';
COMMENT ON COLUMN ledger.refusal.is_canary IS
    'Of a once-verified receipt: whether its last answer was no refusal, and Apple vouched for it lately';
COMMENT ON COLUMN ledger.refusal.counts IS
    'Whether it counts against the receipt; if not, workers ask about the receipt again when the incident ends';
COMMENT ON COLUMN ledger.refusal.rejections_before IS 'The receipt''s rejections before this one';

CREATE TABLE ledger.verified_minute (
    app_id   int NOT NULL,
    minute   timestamptz NOT NULL,
    backend  int NOT NULL,
    answers  bigint NOT NULL,
    PRIMARY KEY (app_id, minute, backend)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE ledger.verified_minute IS
    'Answers by minute that vouched again for once-verified receipts. Each database connection (backend) counts in '
    'rows of its own, so that settlements never wait for each other''s count';

CREATE TABLE ledger.check_hour (
    app_id    int NOT NULL,
    hour      timestamptz NOT NULL,
    verified  bigint NOT NULL,
    rejected  bigint NOT NULL,
    failed    bigint NOT NULL,
    PRIMARY KEY (app_id, hour)
) WITH (fillfactor = 50);
COMMENT ON TABLE ledger.check_hour IS
    'Apple''s answers by hour. A process adds its own every few seconds, so the last ones of a killed process are '
    'missing';
COMMENT ON COLUMN ledger.check_hour.failed IS 'Checks that brought no usable answer';

CREATE TABLE ledger.verify_turn (
    name       text PRIMARY KEY,
    worker_id  int,
    begun_at   timestamptz NOT NULL DEFAULT '-infinity',
    moved_at   timestamptz NOT NULL DEFAULT '-infinity',
    ended_at   timestamptz
);
INSERT INTO ledger.verify_turn (name) VALUES ('coverage'), ('everything');
COMMENT ON TABLE ledger.verify_turn IS
    'What workers verify by turns: one worker at a time has the turn, and a worker that does not move loses it';
COMMENT ON COLUMN ledger.verify_turn.moved_at IS 'When the worker last reported progress';
COMMENT ON COLUMN ledger.verify_turn.ended_at IS 'When the turn was over; null: it is under way, or never began';

CREATE TABLE ledger.invariant (
    name        text PRIMARY KEY,
    violations  bigint NOT NULL,
    repaired    bigint NOT NULL,
    checked_at  timestamptz NOT NULL,
    CONSTRAINT invariant_counts_what_it_found CHECK (0 <= repaired AND repaired <= violations)
);
COMMENT ON TABLE ledger.invariant IS 'What a worker found when it last verified an invariant everywhere';
COMMENT ON COLUMN ledger.invariant.violations IS 'Found, including those that were repaired at once';

CREATE TABLE ledger.correction (
    correction_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    version          bigint NOT NULL,
    fact             text NOT NULL,
    stored           text,
    rebuilt          text,
    recorded_at      timestamptz NOT NULL,
    CONSTRAINT correction_of_one_thing CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT correction_changes_something CHECK (stored IS DISTINCT FROM rebuilt)
);
CREATE INDEX correction_of_subscription ON ledger.correction (subscription_id);
CREATE INDEX correction_of_purchase ON ledger.correction (purchase_id);
COMMENT ON TABLE ledger.correction IS
    'What a rebuild corrected: one row per fact that was stored otherwise than the observations say. A correction '
    'is a version of its own without events, because nothing happened at Apple';
COMMENT ON COLUMN ledger.correction.stored IS 'The fact before the correction';
COMMENT ON COLUMN ledger.correction.rebuilt IS 'The fact as the observations say';
