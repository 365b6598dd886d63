-- Receipts as devices sent them, the customers who sent them, and the narrow hot table of when to ask Apple next.
CREATE TABLE ledger.customer (
    customer_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id       int NOT NULL REFERENCES ledger.app,
    name         text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT customer_name_unique UNIQUE (app_id, name),
    CONSTRAINT customer_name_is_short CHECK (name <> '' AND length(name) <= 255)
);

CREATE TABLE ledger.receipt (
    receipt_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id              int NOT NULL REFERENCES ledger.app,
    digest              bytea NOT NULL,
    data                bytea NOT NULL,
    latest_receipt      bytea,
    environment         ledger.environment,
    received_at         timestamptz NOT NULL DEFAULT now(),
    receipt_created_at  timestamptz,
    outcome             ledger.outcome,
    reason              text,
    asked_at            timestamptz,
    verified_at         timestamptz,
    rejections          smallint NOT NULL DEFAULT 0,
    rejected_since      timestamptz,
    equal_empty_answers smallint NOT NULL DEFAULT 0,
    observation_id      bigint,
    observed_at         timestamptz,
    meaning             bytea,
    settled_token       bigint NOT NULL DEFAULT 0,
    CONSTRAINT receipt_digest_unique UNIQUE (app_id, digest),
    CONSTRAINT receipt_digest_is_sha256 CHECK (length(digest) = 32),
    CONSTRAINT receipt_rejection_has_start CHECK ((rejections = 0) = (rejected_since IS NULL)),
    CONSTRAINT receipt_verified_is_asked CHECK (verified_at IS NULL OR asked_at IS NOT NULL)
) WITH (fillfactor = 85);

CREATE TABLE ledger.upload (
    receipt_id        bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    customer_id       bigint NOT NULL REFERENCES ledger.customer,
    uploaded_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    imported          boolean NOT NULL,
    settled           boolean NOT NULL DEFAULT false,
    storefront        text,
    price_milliunits  bigint,
    currency          text,
    PRIMARY KEY (receipt_id, customer_id)
);
CREATE INDEX upload_of_customer ON ledger.upload (customer_id);

-- A token is never given twice, so that an answer that is sent again is known whatever happened in between.
CREATE SEQUENCE ledger.lease_token_seq AS bigint;

-- due_at is also the end of a lease: a claim moves it forward, so a crashed worker's receipts come due by themselves.
CREATE TABLE ledger.poll_schedule (
    receipt_id     bigint PRIMARY KEY REFERENCES ledger.receipt ON DELETE CASCADE,
    app_id         int NOT NULL,
    lane           smallint NOT NULL,
    due_at         timestamptz NOT NULL,
    scheduled_for  timestamptz NOT NULL,
    lease_token    bigint NOT NULL DEFAULT 0,
    leased_by      int,
    attempts       smallint NOT NULL DEFAULT 0,
    crashes        smallint NOT NULL DEFAULT 0,
    CONSTRAINT poll_schedule_lane_known CHECK (lane BETWEEN 0 AND 2)
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX poll_schedule_due ON ledger.poll_schedule (app_id, lane, due_at);
COMMENT ON COLUMN ledger.poll_schedule.lane IS '0 new: never verified; 1 edge: an access decision is near; 2 sweep: the rest';
