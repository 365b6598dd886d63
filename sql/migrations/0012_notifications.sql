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
    signed_at                timestamptz,
    effect                   text NOT NULL,
    reason                   text,
    check_at                 timestamptz,
    apply_at                 timestamptz,
    attempts                 smallint NOT NULL DEFAULT 0,
    applied_at               timestamptz,
    body                     json,
    texts                    bytea,
    claims                   json,
    CONSTRAINT notification_version_known CHECK (version IN (1, 2)),
    CONSTRAINT notification_is_kept_once UNIQUE (app_id, apple_id),
    CONSTRAINT notification_effect_known CHECK (effect IN (
        'pulled', 'awaited', 'no_subscription', 'unknown', 'ignored', 'wrong_password', 'uploaded', 'received', 'applied',
        'awaits_whole', 'unjoined', 'no_facts')),
    CONSTRAINT notification_pulls_to_a_time CHECK ((check_at IS NULL) = (effect NOT IN ('pulled', 'awaited'))),
    CONSTRAINT notification_is_applied_from_its_texts
        CHECK (apply_at IS NULL OR (signed_at IS NOT NULL AND num_nonnulls(texts, claims) > 0))
);
CREATE INDEX notification_received ON ledger.notification (received_at);
CREATE INDEX notification_of_subscription
    ON ledger.notification (app_id, original_transaction_id, environment, received_at);
CREATE INDEX notification_to_apply ON ledger.notification (apply_at) WHERE apply_at IS NOT NULL;
ALTER TABLE ledger.notification ALTER COLUMN texts SET STORAGE EXTERNAL;
COMMENT ON TABLE ledger.notification IS
    'Apple''s notifications. Verified ones are facts; others only pull the next check forward';
COMMENT ON COLUMN ledger.notification.version IS 'The version of Apple''s format: 1 or 2';
COMMENT ON COLUMN ledger.notification.kind IS 'Apple''s notification type';
COMMENT ON COLUMN ledger.notification.subkind IS 'Apple''s subtype; version 1 has none';
COMMENT ON COLUMN ledger.notification.apple_id IS
    'notificationUUID of version 2: a repetition has the same; version 1 has none';
COMMENT ON COLUMN ledger.notification.signed_at IS
    'When Apple signed it; null: it is not verified, and decides nothing';
COMMENT ON COLUMN ledger.notification.effect IS
    'Of a verified one: received: it is to be applied; applied: its facts are part of the ledger; awaits_whole: it does '
    'not join what is known, so a whole answer comes first; unjoined: no whole answer made it join, and the answers '
    'since decide; no_facts: it holds no transaction and no renewal. '
    'pulled: the next check is at check_at or sooner; awaited: a worker asks about the receipt now and will again '
    'by check_at, or the receipt is in quarantine and keeps its pace; no_subscription: the notification names none; '
    'unknown: no receipt polls a subscription of that name; ignored: the notification is about another app; '
    'uploaded: the receipt in it is asked about; wrong_password: its password is not the app''s secret';
COMMENT ON COLUMN ledger.notification.reason IS 'Why it counts as unverified, or why it was not applied';
COMMENT ON COLUMN ledger.notification.apply_at IS 'When a worker applies it, or tries again; null: nothing is left to apply';
COMMENT ON COLUMN ledger.notification.applied_at IS 'When its facts became part of the ledger';
COMMENT ON COLUMN ledger.notification.body IS 'What an unverified notification says, without any password';
COMMENT ON COLUMN ledger.notification.texts IS
    'The signed texts of a verified notification, each with the number of its chain (ledger.signer_chain); null: removed '
    'when they were old, or with the customer';
COMMENT ON COLUMN ledger.notification.claims IS 'What is kept of the texts once they are removed: the claims that facts rest on';
