-- Every change as an event, and the feed that gives committed events dense positions.
CREATE TABLE ledger.event (
    event_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id        uuid NOT NULL,
    app_id           int NOT NULL REFERENCES ledger.app,
    environment      ledger.environment NOT NULL,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    version          bigint NOT NULL,
    ordinal          smallint NOT NULL,
    kind             ledger.event_kind NOT NULL,
    customer_id      bigint REFERENCES ledger.customer,
    product_id       text NOT NULL,
    occurred_at      timestamptz NOT NULL,
    as_of            timestamptz NOT NULL,
    recorded_at      timestamptz NOT NULL,
    detail           jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT event_public_id_unique UNIQUE (public_id),
    CONSTRAINT event_of_one_stream CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT event_of_subscription_unique UNIQUE (subscription_id, version, ordinal),
    CONSTRAINT event_of_purchase_unique UNIQUE (purchase_id, version, ordinal),
    CONSTRAINT event_is_not_from_the_future CHECK (occurred_at <= as_of)
);

-- Committed events that have no position yet.
CREATE TABLE ledger.event_outbox (
    event_id  bigint PRIMARY KEY REFERENCES ledger.event ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

CREATE TABLE ledger.event_feed (
    position  bigint PRIMARY KEY,
    event_id  bigint NOT NULL REFERENCES ledger.event ON DELETE CASCADE,
    CONSTRAINT event_feed_event_unique UNIQUE (event_id),
    CONSTRAINT event_feed_begins_at_one CHECK (position >= 1)
);

-- The feed's own identity: a cursor of another feed, as after a restore, is refused.
CREATE TABLE ledger.feed (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    feed_id   uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO ledger.feed DEFAULT VALUES;
