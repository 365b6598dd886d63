-- Apps with their sealed secrets, offer keys and settings, the API keys, and the sessions of the admin pages.
CREATE TABLE ledger.app (
    app_id                  int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bundle_id               text NOT NULL,
    name                    text NOT NULL,
    sealed_secret           bytea,
    sealed_previous_secret  bytea,
    notification_digest     bytea,
    sandbox_allowed         boolean NOT NULL DEFAULT true,
    ownership_policy        ledger.ownership_policy NOT NULL DEFAULT 'transfer',
    sweep                   text NOT NULL DEFAULT 'normal',
    leeway_ms               bigint NOT NULL DEFAULT 7200000,
    sandbox_leeway_ms       bigint NOT NULL DEFAULT 300000,
    outage_allowance_ms     bigint NOT NULL DEFAULT 2592000000,
    pre_check_spread_ms     bigint NOT NULL DEFAULT 600000,
    catalog_changed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at              timestamptz NOT NULL DEFAULT now(),
    removed_at              timestamptz,
    CONSTRAINT app_bundle_id_unique UNIQUE (bundle_id),
    CONSTRAINT app_bundle_id_is_short CHECK (bundle_id <> '' AND length(bundle_id) <= 255),
    CONSTRAINT app_notification_digest_unique UNIQUE (notification_digest),
    CONSTRAINT app_notification_digest_is_sha256 CHECK (length(notification_digest) = 32),
    CONSTRAINT app_sweep_known CHECK (sweep IN ('normal', 'relaxed')),
    CONSTRAINT app_delays_are_not_negative
        CHECK (leeway_ms >= 0 AND sandbox_leeway_ms >= 0 AND outage_allowance_ms >= 0),
    CONSTRAINT app_pre_check_spread_is_half_a_day CHECK (pre_check_spread_ms BETWEEN 0 AND 43200000)
);
COMMENT ON TABLE ledger.app IS 'The apps with their settings. Rows are never deleted: events and figures refer to them';
COMMENT ON COLUMN ledger.app.removed_at IS
    'When a person removed the app: it is as if it was never registered, until it is registered again';
COMMENT ON COLUMN ledger.app.sealed_secret IS 'The shared secret of App Store Connect, encrypted with the master key';
COMMENT ON COLUMN ledger.app.sealed_previous_secret IS 'The shared secret before the last rotation, encrypted likewise';
COMMENT ON COLUMN ledger.app.notification_digest IS
    'SHA-256 of the secret in the address that App Store Connect has for notifications; null: the server accepts none';
COMMENT ON COLUMN ledger.app.sweep IS
    'How often the worker looks for refunds: normal, or relaxed, which is half as often, for an app with notifications';
COMMENT ON COLUMN ledger.app.catalog_changed_at IS
    'When the catalog changed last; another instant outdates the stored entitlements of the app''s customers';
COMMENT ON COLUMN ledger.app.leeway_ms IS 'Milliseconds of access after an expiry while Perennial expects a renewal';
COMMENT ON COLUMN ledger.app.sandbox_leeway_ms IS 'The same in the sandbox, in milliseconds';
COMMENT ON COLUMN ledger.app.outage_allowance_ms IS
    'Milliseconds of access after its end while Apple cannot be asked about an expected renewal';
COMMENT ON COLUMN ledger.app.pre_check_spread_ms IS
    'Milliseconds over which the checks shortly before an end are spread; a promotion after which many end together '
    'needs more';

CREATE TABLE ledger.offer_key (
    app_id      int PRIMARY KEY REFERENCES ledger.app,
    key_id      text NOT NULL,
    issuer_id   text,
    sealed_key  bytea NOT NULL,
    stored_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT offer_key_ids_are_short CHECK (key_id ~ '^[0-9A-Za-z_-]{1,64}$' AND issuer_id ~ '^[0-9A-Za-z_-]{1,64}$')
);
COMMENT ON TABLE ledger.offer_key IS 'The keys of App Store Connect that sign promotional offers, at most one for each app';
COMMENT ON COLUMN ledger.offer_key.key_id IS 'The key''s id in App Store Connect';
COMMENT ON COLUMN ledger.offer_key.issuer_id IS 'The issuer of the team''s keys; null: only the classic form can be signed';
COMMENT ON COLUMN ledger.offer_key.sealed_key IS 'The private key, encrypted with the master key';

CREATE TABLE ledger.api_key (
    key_id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id      int REFERENCES ledger.app,
    scope       ledger.scope NOT NULL,
    digest      bytea NOT NULL,
    rate        double precision NOT NULL DEFAULT 20000,
    burst       double precision NOT NULL DEFAULT 40000,
    created_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at  timestamptz,
    CONSTRAINT api_key_digest_unique UNIQUE (digest),
    CONSTRAINT api_key_digest_is_sha256 CHECK (length(digest) = 32),
    CONSTRAINT api_key_rate_is_sane CHECK (rate >= 0 AND burst >= 1)
);
COMMENT ON TABLE ledger.api_key IS 'The API keys. The database stores only a hash of each';
COMMENT ON COLUMN ledger.api_key.app_id IS 'The only app that the key may ask about; null: every app';
COMMENT ON COLUMN ledger.api_key.digest IS 'SHA-256 of the key';
COMMENT ON COLUMN ledger.api_key.rate IS 'Requests a second; 0: unlimited';
COMMENT ON COLUMN ledger.api_key.burst IS 'Requests at once';

CREATE TABLE ledger.admin_session (
    digest      bytea PRIMARY KEY,
    key_id      int NOT NULL REFERENCES ledger.api_key,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT admin_session_digest_is_sha256 CHECK (length(digest) = 32)
);
COMMENT ON TABLE ledger.admin_session IS 'The sessions of the admin pages; all servers share them';
COMMENT ON COLUMN ledger.admin_session.digest IS 'SHA-256 of what the browser holds';
COMMENT ON COLUMN ledger.admin_session.key_id IS 'The API key that signed in';
