-- Incidents: when Apple refuses many once-verified receipts of an app at once, the fault is not the receipts'.
CREATE TABLE ledger.incident (
    incident_id    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id         int NOT NULL REFERENCES ledger.app,
    kind           text NOT NULL,
    opened_at      timestamptz NOT NULL,
    recognised_at  timestamptz NOT NULL,
    closed_at      timestamptz,
    asked          bigint NOT NULL,
    refused        bigint NOT NULL,
    last_reason    text NOT NULL,
    CONSTRAINT incident_kind_known CHECK (kind IN ('refusals')),
    CONSTRAINT incident_clocks_are_in_order CHECK (opened_at <= recognised_at AND recognised_at <= closed_at),
    CONSTRAINT incident_refused_were_asked CHECK (0 <= refused AND refused <= asked)
);
CREATE UNIQUE INDEX incident_running ON ledger.incident (app_id, kind) WHERE closed_at IS NULL;
COMMENT ON COLUMN ledger.incident.opened_at IS
    'When the first receipt was refused; recognised_at: when too many were';
COMMENT ON COLUMN ledger.incident.asked IS
    'Answers about once-verified receipts since opened_at; a receipt that is refused again counts once';

-- Receipts refused lately, for ten minutes or until an incident's end; the first refusal of each.
CREATE TABLE ledger.refusal (
    receipt_id         bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    app_id             int NOT NULL,
    refused_at         timestamptz NOT NULL,
    once_verified      boolean NOT NULL,
    counts             boolean NOT NULL,
    rejections_before  smallint NOT NULL,
    reason             text NOT NULL
);
CREATE INDEX refusal_of_app ON ledger.refusal (app_id, refused_at);
COMMENT ON COLUMN ledger.refusal.counts IS
    'Whether it counts against the receipt; if not, the receipt is asked about again when the incident ends';

-- Answers that vouched again for once-verified receipts. Each database connection counts in rows of its own, so that
-- settlements never wait for each other's count.
CREATE TABLE ledger.vouched_minute (
    app_id   int NOT NULL,
    minute   timestamptz NOT NULL,
    backend  int NOT NULL,
    answers  bigint NOT NULL,
    PRIMARY KEY (app_id, minute, backend)
) WITH (fillfactor = 50);
