-- Apps with their sealed secrets and settings, their budget of calls, their catalog, the API keys and the workers.
CREATE TABLE ledger.app (
    app_id                  int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bundle_id               text NOT NULL,
    name                    text NOT NULL,
    sealed_secret           bytea,
    sealed_previous_secret  bytea,
    sandbox_allowed         boolean NOT NULL DEFAULT true,
    ownership_policy        ledger.ownership_policy NOT NULL DEFAULT 'transfer',
    leeway_ms               bigint NOT NULL DEFAULT 7200000,
    sandbox_leeway_ms       bigint NOT NULL DEFAULT 300000,
    outage_allowance_ms     bigint NOT NULL DEFAULT 2592000000,
    created_at              timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT app_bundle_id_unique UNIQUE (bundle_id),
    CONSTRAINT app_bundle_id_is_short CHECK (bundle_id <> '' AND length(bundle_id) <= 255),
    CONSTRAINT app_delays_are_not_negative CHECK (leeway_ms >= 0 AND sandbox_leeway_ms >= 0 AND outage_allowance_ms >= 0)
);

-- A rate of 0 means unlimited.
CREATE TABLE ledger.app_budget (
    app_id       int PRIMARY KEY REFERENCES ledger.app,
    rate         double precision NOT NULL DEFAULT 50,
    burst        double precision NOT NULL DEFAULT 50,
    tokens       double precision NOT NULL DEFAULT 50,
    refilled_at  timestamptz NOT NULL DEFAULT now(),
    open_until   timestamptz NOT NULL DEFAULT '-infinity',
    open_reason  text,
    CONSTRAINT app_budget_is_sane CHECK (rate >= 0 AND burst >= 1 AND tokens >= 0)
) WITH (fillfactor = 50);

CREATE TABLE ledger.product (
    app_id            int NOT NULL REFERENCES ledger.app,
    product_id        text NOT NULL,
    group_id          text,
    level             int,
    period            text,
    price_milliunits  bigint,
    currency          text,
    PRIMARY KEY (app_id, product_id),
    CONSTRAINT product_price_has_currency CHECK ((price_milliunits IS NULL) = (currency IS NULL)),
    CONSTRAINT product_period_is_iso_8601 CHECK (period ~ '^P[0-9]+[DWMY]$')
);

-- Which product grants which right: valid is when it applies, known is when we said so.
-- The empty right says only that the catalog names the product: one that it does not name grants its own id.
CREATE TABLE ledger.catalog_grant (
    app_id       int NOT NULL REFERENCES ledger.app,
    product_id   text NOT NULL,
    entitlement  text NOT NULL,
    valid        tstzrange NOT NULL,
    known        tstzrange NOT NULL,
    CONSTRAINT catalog_grant_says_one_thing EXCLUDE USING gist
        (app_id WITH =, product_id WITH =, entitlement WITH =, valid WITH &&, known WITH &&)
);
CREATE INDEX catalog_grant_open ON ledger.catalog_grant (app_id, product_id) WHERE upper_inf(known);

CREATE TABLE ledger.api_key (
    key_id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest      bytea NOT NULL,
    scope       ledger.scope NOT NULL,
    app_id      int REFERENCES ledger.app,
    created_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at  timestamptz,
    CONSTRAINT api_key_digest_unique UNIQUE (digest),
    CONSTRAINT api_key_digest_is_sha256 CHECK (length(digest) = 32)
);

CREATE TABLE ledger.worker (
    worker_id     int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host          text NOT NULL,
    pid           int NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    heartbeat_at  timestamptz NOT NULL DEFAULT now(),
    stopped_at    timestamptz
) WITH (fillfactor = 50);
