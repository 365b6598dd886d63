-- Apple's notifications, as they came and with what each did.
CREATE TABLE ledger.notification (
    notification_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL,
    received_at              timestamptz NOT NULL,
    version                  smallint NOT NULL,
    kind                     text NOT NULL,
    subkind                  text,
    apple_id                 text,
    environment              ledger.environment,
    original_transaction_id  text,
    effect                   text NOT NULL,
    check_at                 timestamptz,
    body                     json NOT NULL,
    CONSTRAINT notification_version_known CHECK (version IN (1, 2)),
    CONSTRAINT notification_is_kept_once UNIQUE (app_id, apple_id),
    CONSTRAINT notification_effect_known
        CHECK (effect IN ('pulled', 'awaited', 'no_subscription', 'unknown', 'ignored')),
    CONSTRAINT notification_pulls_to_a_time CHECK ((check_at IS NULL) = (effect NOT IN ('pulled', 'awaited')))
);
CREATE INDEX notification_received ON ledger.notification (received_at);
CREATE INDEX notification_of_subscription
    ON ledger.notification (app_id, original_transaction_id, environment, received_at);
COMMENT ON TABLE ledger.notification IS
    'Apple''s notifications of the last 90 days. They pull the next check forward and decide nothing';
COMMENT ON COLUMN ledger.notification.version IS 'The version of Apple''s format: 1 or 2';
COMMENT ON COLUMN ledger.notification.kind IS 'Apple''s notification type';
COMMENT ON COLUMN ledger.notification.subkind IS 'Apple''s subtype; version 1 has none';
COMMENT ON COLUMN ledger.notification.apple_id IS
    'notificationUUID of version 2: a repetition has the same; version 1 has none';
COMMENT ON COLUMN ledger.notification.effect IS
    'pulled: the next check is at check_at or sooner; awaited: a worker asks about the receipt now and will again '
    'by check_at, or the receipt is in quarantine and keeps its pace; no_subscription: the notification names none; '
    'unknown: no receipt polls a subscription of that name; ignored: the notification is about another app';
COMMENT ON COLUMN ledger.notification.body IS 'The decoded notification; its signature was not verified';
