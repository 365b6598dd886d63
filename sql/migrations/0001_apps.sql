-- Apps with their settings and sealed secrets, the keys of callers, and how many calls to Apple an app may make.
CREATE EXTENSION IF NOT EXISTS btree_gist; -- the exclusion constraints need it

-- The program makes the schema ledger and the table ledger.migration before it applies the first migration.
COMMENT ON SCHEMA ledger IS 'What Perennial remembers. Private: other programs read the schema perennial instead.';
COMMENT ON TABLE ledger.migration IS
    'The migrations that this database has, in order; digest is the SHA-256 of the text';

CREATE SCHEMA perennial;
COMMENT ON SCHEMA perennial IS 'The stable surface for other people''s SQL.';

CREATE TYPE ledger.environment AS ENUM ('Production', 'Sandbox');
COMMENT ON TYPE ledger.environment IS
    'Apple''s environment. The order matters: production sorts first and wins between equals';

CREATE TYPE ledger.ownership_policy AS ENUM ('transfer', 'keep', 'transfer_if_lapsed');
COMMENT ON TYPE ledger.ownership_policy IS
    'What an upload by another customer does. transfer: the newest uploader takes over; keep: the owner stays; '
    'transfer_if_lapsed: the newest uploader takes over only what gives no access any more';

CREATE TABLE ledger.app (
    app_id                  int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bundle_id               text NOT NULL,
    name                    text NOT NULL,
    apple_app_id            bigint,
    sealed_secret           bytea,
    sealed_previous_secret  bytea,
    notification_digest     bytea,
    sandbox_allowed         boolean NOT NULL DEFAULT true,
    verifier                text NOT NULL DEFAULT 'verify_receipt',
    compares_since          timestamptz,
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
    CONSTRAINT app_delays_are_not_negative
        CHECK (leeway_ms >= 0 AND sandbox_leeway_ms >= 0 AND outage_allowance_ms >= 0),
    CONSTRAINT app_pre_check_spread_is_half_a_day CHECK (pre_check_spread_ms BETWEEN 0 AND 43200000),
    CONSTRAINT app_apple_id_is_a_number_from_one CHECK (apple_app_id >= 1),
    CONSTRAINT app_verifier_known CHECK (verifier IN ('verify_receipt', 'server_api', 'both')),
    CONSTRAINT app_compares_only_with_both CHECK ((compares_since IS NOT NULL) = (verifier = 'both')),
    CONSTRAINT app_sweep_known CHECK (sweep IN ('normal', 'relaxed'))
);
COMMENT ON TABLE ledger.app IS 'The apps with their settings. Rows are never deleted: events and figures refer to them';
COMMENT ON COLUMN ledger.app.apple_app_id IS
    'Apple''s number of the app (appAppleId); production texts that name another one are refused; null: not compared';
COMMENT ON COLUMN ledger.app.sealed_secret IS 'The shared secret of App Store Connect, encrypted with the master key';
COMMENT ON COLUMN ledger.app.sealed_previous_secret IS 'The shared secret before the last rotation, encrypted likewise';
COMMENT ON COLUMN ledger.app.notification_digest IS
    'SHA-256 of the secret in the address that App Store Connect has for notifications; null: the server accepts none';
COMMENT ON COLUMN ledger.app.verifier IS
    'Who is asked about receipts: verify_receipt; server_api; both: verifyReceipt decides, and the Server API is '
    'compared. Uploads without receipts always ask the Server API';
COMMENT ON COLUMN ledger.app.compares_since IS 'Since when both channels are asked; null: one is asked';
COMMENT ON COLUMN ledger.app.sweep IS
    'How often the worker looks for refunds: normal, or relaxed, which is half as often, for an app with notifications';
COMMENT ON COLUMN ledger.app.leeway_ms IS 'Milliseconds of access after an expiry while Perennial expects a renewal';
COMMENT ON COLUMN ledger.app.sandbox_leeway_ms IS 'The same in the sandbox, in milliseconds';
COMMENT ON COLUMN ledger.app.outage_allowance_ms IS
    'Milliseconds of access after its end while Apple cannot be asked about an expected renewal';
COMMENT ON COLUMN ledger.app.pre_check_spread_ms IS
    'Milliseconds over which the checks shortly before an end are spread; a promotion after which many end together '
    'needs more';
COMMENT ON COLUMN ledger.app.catalog_changed_at IS
    'When the catalog changed last; another instant outdates the stored entitlements of the app''s customers';
COMMENT ON COLUMN ledger.app.removed_at IS
    'When a person removed the app: it is as if it was never registered, until it is registered again';

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

CREATE TABLE ledger.server_key (
    app_id      int PRIMARY KEY REFERENCES ledger.app,
    key_id      text NOT NULL,
    issuer_id   text NOT NULL,
    sealed_key  bytea NOT NULL,
    stored_at   timestamptz NOT NULL DEFAULT now(),
    taken_up    bigint DEFAULT 0,
    CONSTRAINT server_key_ids_are_short CHECK (key_id ~ '^[0-9A-Za-z_-]{1,64}$' AND issuer_id ~ '^[0-9A-Za-z_-]{1,64}$')
);
COMMENT ON TABLE ledger.server_key IS
    'The In-App Purchase keys of App Store Connect that sign requests to the Server API, at most one for each app';
COMMENT ON COLUMN ledger.server_key.key_id IS 'The key''s id in App Store Connect';
COMMENT ON COLUMN ledger.server_key.issuer_id IS 'The issuer of the team''s keys';
COMMENT ON COLUMN ledger.server_key.sealed_key IS 'The private key, encrypted with the master key';
COMMENT ON COLUMN ledger.server_key.taken_up IS
    'Up to which receipt workers took up what notifications made and no receipt polls; null: all since the key was stored';

CREATE TYPE ledger.scope AS ENUM ('read', 'write', 'admin');
COMMENT ON TYPE ledger.scope IS 'What an API key may do; each scope includes the ones before it';

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

CREATE FUNCTION ledger.app_key(bundle_id text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    known int;
BEGIN
    SELECT a.app_id INTO known FROM ledger.app a WHERE a.bundle_id = app_key.bundle_id;
    IF known IS NULL THEN
        RAISE EXCEPTION 'There is no app %; add it with `perennial app add`.', bundle_id;
    END IF;
    RETURN known;
END $$;
COMMENT ON FUNCTION ledger.app_key IS 'The key of an app, or an error if there is no such app';

CREATE TABLE ledger.app_budget (
    app_id          int PRIMARY KEY REFERENCES ledger.app,
    rate            double precision NOT NULL DEFAULT 50,
    burst           double precision NOT NULL DEFAULT 50,
    tokens          double precision NOT NULL DEFAULT 50,
    refilled_at     timestamptz NOT NULL DEFAULT now(),
    slowed_to       double precision,
    slowed_at       timestamptz,
    failures        smallint NOT NULL DEFAULT 0,
    paused_until    timestamptz NOT NULL DEFAULT '-infinity',
    paused_because  text,
    CONSTRAINT app_budget_is_sane CHECK (rate >= 0 AND burst >= 1 AND tokens >= 0),
    CONSTRAINT app_budget_slowed_has_both CHECK ((slowed_to IS NULL) = (slowed_at IS NULL)),
    CONSTRAINT app_budget_never_stands_still CHECK (slowed_to >= 0.5)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ledger.app_budget IS
    'The budget of calls to Apple of each app (a token bucket), and the breaker of the app';
COMMENT ON COLUMN ledger.app_budget.rate IS 'Calls a second; 0: unlimited';
COMMENT ON COLUMN ledger.app_budget.burst IS 'Calls at once: the most tokens that the app can save';
COMMENT ON COLUMN ledger.app_budget.tokens IS 'Calls that the app could make at refilled_at';
COMMENT ON COLUMN ledger.app_budget.slowed_to IS
    'Calls a second when Apple last asked for fewer, at slowed_at; since then they grow (ledger.calls_a_second)';
COMMENT ON COLUMN ledger.app_budget.failures IS
    'Rounds of answers in a row that mostly failed; above 0 workers try only a few receipts';
COMMENT ON COLUMN ledger.app_budget.paused_until IS
    'Workers ask nothing for this app until then; paused_because says why';

CREATE FUNCTION ledger.calls_a_second(
    rate double precision, slowed_to double precision, slowed_at timestamptz, at timestamptz)
RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN slowed_to IS NULL OR grown >= full_rate THEN rate ELSE grown END
    FROM (SELECT CASE rate WHEN 0 THEN 1000 ELSE rate END AS full_rate) f
    CROSS JOIN LATERAL (
        SELECT slowed_to
            + GREATEST(full_rate / 60, 0.05) * GREATEST(0, EXTRACT(epoch FROM at - slowed_at))::float8 AS grown) g
$$;
COMMENT ON FUNCTION ledger.calls_a_second IS
    'How many calls a second an app may make at an instant (0: unlimited). From what it was slowed to, it regains a '
    'sixtieth of its rate each second, so a minute after Apple''s last complaint it has its full rate. An unlimited '
    'app grows to 1000';

CREATE TABLE ledger.call_budget (
    app_id           int NOT NULL REFERENCES ledger.app,
    environment      ledger.environment NOT NULL,
    endpoint         text NOT NULL,
    tokens           double precision NOT NULL,
    refilled_at      timestamptz NOT NULL,
    paused_until     timestamptz NOT NULL DEFAULT '-infinity',
    refused_because  text,
    PRIMARY KEY (app_id, environment, endpoint),
    CONSTRAINT call_budget_tokens_are_not_negative CHECK (tokens >= 0),
    CONSTRAINT call_budget_endpoint_known CHECK (
        endpoint IN ('statuses', 'history', 'transactions', 'refunds', 'extensions', 'single'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ledger.call_budget IS
    'The budgets of calls to the Server API (token buckets), because Apple limits each kind of call of an app on its own. '
    'ledger.app_budget paces the checks';
COMMENT ON COLUMN ledger.call_budget.endpoint IS
    'A kind of call: statuses, history (of transactions), transactions (one transaction, consumption), refunds (refund '
    'history and orders), extensions (extend one, account token), single (extend all, test notification)';
COMMENT ON COLUMN ledger.call_budget.tokens IS 'Calls that could be made at refilled_at';
COMMENT ON COLUMN ledger.call_budget.paused_until IS
    'No call is made until then: Apple asked for it with Retry-After, or refused the server key';
COMMENT ON COLUMN ledger.call_budget.refused_because IS
    'Why Apple refuses the app''s server key, for the pause until paused_until; null: it asked for fewer requests';

CREATE TABLE ledger.apple_breaker (
    is_only         boolean PRIMARY KEY DEFAULT true,
    failures        smallint NOT NULL DEFAULT 0,
    paused_until    timestamptz NOT NULL DEFAULT '-infinity',
    paused_because  text,
    CONSTRAINT apple_breaker_is_one CHECK (is_only)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE ledger.apple_breaker IS
    'The breaker of all apps, one row: while Apple does not answer at all, every worker waits';
COMMENT ON COLUMN ledger.apple_breaker.failures IS
    'Rounds of calls in a row, about any app, that mostly brought no answer at all';
COMMENT ON COLUMN ledger.apple_breaker.paused_until IS
    'Workers ask nothing until then; paused_because says why';
INSERT INTO ledger.apple_breaker DEFAULT VALUES;
ANALYZE ledger.apple_breaker;

CREATE TABLE ledger.secret_trial (
    app_id            int NOT NULL REFERENCES ledger.app ON DELETE CASCADE,
    environment       ledger.environment NOT NULL,
    proved_at         timestamptz,
    refused_at        timestamptz,
    paused_since      timestamptz,
    previous_since    timestamptz,
    try_at            timestamptz NOT NULL DEFAULT '-infinity',
    unanswered        smallint NOT NULL DEFAULT 0,
    refused_receipts  bigint[] NOT NULL DEFAULT '{}',
    is_untold         boolean NOT NULL DEFAULT false,
    PRIMARY KEY (app_id, environment),
    CONSTRAINT secret_trial_accepts_one CHECK (proved_at IS NULL OR previous_since IS NULL)
);
COMMENT ON TABLE ledger.secret_trial IS
    'Whether Apple accepts the present shared secret of an app in an environment. A refusal (21004) about one receipt may '
    'only mean that the receipt is of another app, so the secret is tried on a receipt that is known to be of the app';
COMMENT ON COLUMN ledger.secret_trial.proved_at IS 'When Apple first accepted the present secret; null: not yet';
COMMENT ON COLUMN ledger.secret_trial.refused_at IS
    'When the first call began that Apple refused since the last trial; null: none';
COMMENT ON COLUMN ledger.secret_trial.paused_since IS
    'Since when Apple refuses the secret: nothing is asked until a trial is accepted; null: not paused';
COMMENT ON COLUMN ledger.secret_trial.previous_since IS
    'Since when Apple refuses the present secret and accepts the one before, with which checks go on; null: not so';
COMMENT ON COLUMN ledger.secret_trial.try_at IS 'The next trial is not before this';
COMMENT ON COLUMN ledger.secret_trial.unanswered IS 'How many trials in a row brought no answer';
COMMENT ON COLUMN ledger.secret_trial.refused_receipts IS
    'The first receipts that Apple refused since the last trial with a verdict, at most 100';
COMMENT ON COLUMN ledger.secret_trial.is_untold IS
    'Whether the last trial found no receipt that can tell whether Apple accepts the secret';

CREATE FUNCTION ledger.secret_pause(app int, sandbox boolean) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT 'Apple refuses the shared secret (21004) in ' || t.environment
           || '; run `perennial app rotate-secret`. One receipt is tried every minute until Apple accepts it'
    FROM ledger.secret_trial t JOIN ledger.app a USING (app_id)
    WHERE t.app_id = app AND t.paused_since IS NOT NULL AND a.verifier = 'verify_receipt'
      AND t.environment = CASE WHEN sandbox THEN 'Sandbox' ELSE 'Production' END::ledger.environment
    UNION ALL
    SELECT COALESCE(max(b.refused_because), 'Apple asks for fewer requests')
    FROM ledger.call_budget b JOIN ledger.app a USING (app_id)
    WHERE b.app_id = app AND b.endpoint IN ('statuses', 'history') AND b.paused_until > now() AND a.verifier = 'server_api'
      AND b.environment = CASE WHEN sandbox THEN 'Sandbox' ELSE 'Production' END::ledger.environment
    HAVING count(*) > 0
$$;
COMMENT ON FUNCTION ledger.secret_pause IS
    'Why scheduled checks of an app wait in the sandbox or in production: Apple refuses its shared secret there, '
    'and the app does '
    'not ask the Server API; or calls of the Server API are paused there, and the app asks nothing else';

CREATE TABLE ledger.refused_bundle (
    app_id     int NOT NULL REFERENCES ledger.app ON DELETE CASCADE,
    bundle_id  text NOT NULL,
    receipts   bigint NOT NULL,
    last_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (app_id, bundle_id)
);
COMMENT ON TABLE ledger.refused_bundle IS
    'Bundle ids of receipts that were sent for an app and refused because they name another one, with how many; a '
    'bounded number for each app, so that a new one may take the place of the rarest and count on from it';

CREATE TABLE ledger.signer_chain (
    chain_id  int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    header    text NOT NULL,
    digest    bytea NOT NULL,
    CONSTRAINT signer_chain_digest_unique UNIQUE (digest),
    CONSTRAINT signer_chain_digest_is_sha256 CHECK (length(digest) = 32)
);
COMMENT ON TABLE ledger.signer_chain IS
    'The headers of signed texts, each once: algorithm and certificates. A stored text has the number of its header in '
    'place of the header';
COMMENT ON COLUMN ledger.signer_chain.header IS 'The header in base64url, as it was signed';
COMMENT ON COLUMN ledger.signer_chain.digest IS 'SHA-256 of header';

CREATE TABLE ledger.compatibility (
    is_only      boolean PRIMARY KEY DEFAULT true,
    program_min  int NOT NULL,
    CONSTRAINT compatibility_is_one CHECK (is_only)
);
COMMENT ON TABLE ledger.compatibility IS
    'Which programs work with the schema, one row. A migration that only adds leaves it unchanged. A migration that '
    'removes or changes what earlier programs use sets program_min to its own number, and they are refused from '
    'then on';
COMMENT ON COLUMN ledger.compatibility.program_min IS
    'How many migrations a program must know, at least, to work with this schema';
INSERT INTO ledger.compatibility (program_min) VALUES (1);

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
COMMENT ON COLUMN ledger.worker.stopped_at IS
    'When the process said that it stops; equal to started_at: it checks single receipts on request, so no work '
    'depends on it';

-- Servers send heartbeats too, and what a process that is gone had leased is taken over before its lease ends.
CREATE FUNCTION ledger.gone_at(w ledger.worker) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN w.stopped_at > w.started_at THEN w.stopped_at
                WHEN w.heartbeat_at > w.started_at THEN w.heartbeat_at + interval '20 seconds' END
$$;
COMMENT ON FUNCTION ledger.gone_at IS
    'From when a process counts as gone: since it said that it stops, or four heartbeats after its last one; null: '
    'it sends none';

CREATE TABLE ledger.audit (
    audit_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    happened_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    key_id         int REFERENCES ledger.api_key,
    os_user        text,
    action         text NOT NULL,
    app_id         int REFERENCES ledger.app,
    customer_id    bigint,
    receipt_id     bigint,
    decided_about  bigint[],
    detail         jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT audit_names_one_actor
        CHECK (num_nonnulls(key_id, os_user) = 1 OR action = 'feed.renewed' AND num_nonnulls(key_id, os_user) = 0)
);
CREATE INDEX audit_of_app ON ledger.audit (app_id, audit_id);
-- The audit has a row per upload, and an erasure reads none of those.
CREATE INDEX audit_decided_about ON ledger.audit USING gin (decided_about) WHERE decided_about IS NOT NULL;
COMMENT ON TABLE ledger.audit IS
    'Every write by a person or an API key, except a key''s orders and acknowledgements, which order_change and delivery '
    'have; stored with the write itself where that is one transaction. It names '
    'customers by number, so that an erasure reaches it, and holds neither secrets nor receipts';
COMMENT ON COLUMN ledger.audit.key_id IS
    'The API key that acted; null: a user of the operating system, or the database itself';
COMMENT ON COLUMN ledger.audit.os_user IS 'The user of the operating system that acted';
COMMENT ON COLUMN ledger.audit.decided_about IS
    'Every customer that a manual decision is about, because its reason may speak of each; null: no decision about '
    'customers';
COMMENT ON COLUMN ledger.audit.detail IS
    'What was done; for a decision also who decided and why, until one of those customers is erased';
