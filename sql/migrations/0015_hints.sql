-- Apple's notifications as hints: they are kept for a while and pull the next check forward; they decide nothing.
ALTER TABLE ledger.app
    ADD COLUMN notification_digest bytea,
    ADD COLUMN sweep text NOT NULL DEFAULT 'normal',
    ADD CONSTRAINT app_notification_digest_unique UNIQUE (notification_digest),
    ADD CONSTRAINT app_notification_digest_is_sha256 CHECK (length(notification_digest) = 32),
    ADD CONSTRAINT app_sweep_known CHECK (sweep IN ('normal', 'relaxed'));
COMMENT ON COLUMN ledger.app.notification_digest IS
    'SHA-256 of the secret in the address that App Store Connect has for notifications; null: none are taken';
COMMENT ON COLUMN ledger.app.sweep IS 'How often refunds are looked for: normal, or relaxed: half as often, for an app with notifications';

-- What is in body is nobody's word: it was not verified. Kept for 90 days.
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
    CONSTRAINT notification_effect_known CHECK (effect IN ('pulled', 'awaited', 'no_subscription', 'unknown', 'ignored')),
    CONSTRAINT notification_pulls_to_a_time CHECK ((check_at IS NULL) = (effect NOT IN ('pulled', 'awaited')))
);
CREATE INDEX notification_received ON ledger.notification (received_at);
CREATE INDEX notification_of_subscription
    ON ledger.notification (app_id, original_transaction_id, environment, received_at);
COMMENT ON COLUMN ledger.notification.apple_id IS 'notificationUUID of version 2: a repetition has the same; version 1 has none';
COMMENT ON COLUMN ledger.notification.effect IS
    'pulled: the next check is at check_at or sooner; awaited: the receipt is being asked about and will be again by check_at, or it is in quarantine and keeps its pace; no_subscription: it names none; unknown: we know none of that name that is polled; ignored: it is about another app';
