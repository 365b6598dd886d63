-- Subscriptions with their periods and timelines, and one-time purchases.
CREATE TABLE ledger.subscription (
    subscription_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL REFERENCES ledger.app,
    environment              ledger.environment NOT NULL,
    original_transaction_id  text NOT NULL,
    group_id                 text,
    polled_by                bigint REFERENCES ledger.receipt ON DELETE SET NULL,
    version                  bigint NOT NULL DEFAULT 0,
    as_of                    timestamptz,
    checked_at               timestamptz,
    recorded_at              timestamptz,
    next_check_at            timestamptz,
    renewal                  jsonb,
    renewal_as_of            timestamptz,
    renewal_path             text,
    suspected                jsonb,
    will_renew               boolean,
    renews_to_product_id     text,
    flags                    text[] NOT NULL DEFAULT '{}',
    expires_at               timestamptz,
    head_starts_at           timestamptz,
    started_at               timestamptz,
    periods                  int NOT NULL DEFAULT 0,
    leeway_ms                bigint NOT NULL DEFAULT 0,
    app_account_token        text,
    CONSTRAINT subscription_natural_key UNIQUE (app_id, environment, original_transaction_id),
    CONSTRAINT subscription_known_has_clocks CHECK (version = 0 OR num_nulls(as_of, checked_at, recorded_at) = 0),
    CONSTRAINT subscription_renews_to_only_if_it_will CHECK (renews_to_product_id IS NULL OR will_renew)
) WITH (fillfactor = 75);
CREATE INDEX subscription_polled_by ON ledger.subscription (polled_by);

-- Which verified receipts hold which subscriptions: where polling goes when the polling receipt is rejected.
CREATE TABLE ledger.receipt_subscription (
    receipt_id       bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    subscription_id  bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    PRIMARY KEY (subscription_id, receipt_id)
);

-- as_of null: the row was confirmed by the newest answer of its subscription.
CREATE TABLE ledger.period (
    period_id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id          bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    web_order_line_item_id   text,
    product_id               text NOT NULL,
    quantity                 int NOT NULL,
    purchased_at             timestamptz NOT NULL,
    expires_at               timestamptz NOT NULL,
    original_purchased_at    timestamptz,
    cancelled_at             timestamptz,
    cancellation_reason      text,
    is_upgraded              boolean NOT NULL,
    is_trial                 boolean NOT NULL,
    is_intro                 boolean NOT NULL,
    promotional_offer_id     text,
    offer_code_ref_name      text,
    group_id                 text,
    ownership                text,
    app_account_token        text,
    replaced_by              text,
    ending                   jsonb,
    as_of                    timestamptz,
    path                     text NOT NULL,
    older_facts              jsonb,
    recorded_at              timestamptz NOT NULL,
    cancellation_recorded_at timestamptz
);
CREATE UNIQUE INDEX period_web_order_line_item ON ledger.period (subscription_id, web_order_line_item_id)
    WHERE web_order_line_item_id IS NOT NULL;
CREATE INDEX period_of_subscription ON ledger.period (subscription_id);

CREATE TABLE ledger.transaction_alias (
    subscription_id  bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    transaction_id   text NOT NULL,
    period_id        bigint NOT NULL REFERENCES ledger.period ON DELETE CASCADE,
    PRIMARY KEY (subscription_id, transaction_id, period_id)
);
CREATE INDEX transaction_alias_by_id ON ledger.transaction_alias (transaction_id);

CREATE TABLE ledger.purchase (
    purchase_id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL REFERENCES ledger.app,
    environment              ledger.environment NOT NULL,
    original_transaction_id  text NOT NULL,
    product_id               text NOT NULL,
    transaction_id           text,
    transaction_ids          text[] NOT NULL DEFAULT '{}',
    facts                    jsonb,
    quantity                 int,
    purchased_at             timestamptz,
    revoked_at               timestamptz,
    revocation_recorded_at   timestamptz,
    app_account_token        text,
    version                  bigint NOT NULL DEFAULT 0,
    as_of                    timestamptz,
    checked_at               timestamptz,
    recorded_at              timestamptz,
    first_recorded_at        timestamptz,
    CONSTRAINT purchase_natural_key UNIQUE (app_id, environment, original_transaction_id, product_id),
    CONSTRAINT purchase_known_is_complete CHECK
        (version = 0 OR num_nulls(transaction_id, facts, quantity, purchased_at, as_of, checked_at, recorded_at) = 0)
) WITH (fillfactor = 75);

-- The timeline: valid is when it holds for the customer, known is when we said so. A closed row never changes.
-- held_until: access would end where this row begins, but only for want of good news and Apple was not asked since;
-- until then it goes on.
CREATE TABLE ledger.subscription_span (
    subscription_id  bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    valid            tstzrange NOT NULL,
    known            tstzrange NOT NULL,
    state            ledger.state NOT NULL,
    reason           ledger.reason,
    entitled         boolean NOT NULL,
    product_id       text NOT NULL,
    flags            text[] NOT NULL DEFAULT '{}',
    held_until       timestamptz,
    version          bigint NOT NULL,
    CONSTRAINT subscription_span_is_not_empty CHECK (NOT isempty(valid) AND NOT isempty(known)),
    CONSTRAINT subscription_span_reason_fits CHECK (
        CASE state
            WHEN 'expired' THEN reason IN
                ('voluntary', 'billing_error', 'price_increase', 'product_unavailable', 'other', 'unknown')
            WHEN 'revoked' THEN reason IN ('refund', 'family')
            WHEN 'awaiting_renewal' THEN reason IN ('renewal', 'replacement')
            ELSE reason IS NULL
        END),
    CONSTRAINT subscription_span_entitled_fits CHECK
        (entitled = (state IN ('active', 'grace_period', 'awaiting_renewal'))),
    CONSTRAINT subscription_span_held_only_without_access CHECK
        (held_until IS NULL OR (NOT entitled AND held_until > lower(valid))),
    CONSTRAINT subscription_span_says_one_thing EXCLUDE USING gist
        (subscription_id WITH =, valid WITH &&, known WITH &&)
);
CREATE UNIQUE INDEX subscription_span_open ON ledger.subscription_span (subscription_id, lower(valid))
    WHERE upper_inf(known);
CREATE INDEX subscription_span_held ON ledger.subscription_span (held_until)
    WHERE upper_inf(known) AND held_until IS NOT NULL;

-- Who owns what; valid and known as for spans.
CREATE TABLE ledger.ownership (
    ownership_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    customer_id      bigint NOT NULL REFERENCES ledger.customer,
    valid            tstzrange NOT NULL,
    known            tstzrange NOT NULL,
    CONSTRAINT ownership_of_one_thing CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT ownership_of_subscription_says_one_thing EXCLUDE USING gist
        (subscription_id WITH =, valid WITH &&, known WITH &&) WHERE (subscription_id IS NOT NULL),
    CONSTRAINT ownership_of_purchase_says_one_thing EXCLUDE USING gist
        (purchase_id WITH =, valid WITH &&, known WITH &&) WHERE (purchase_id IS NOT NULL)
);
CREATE INDEX ownership_of_customer ON ledger.ownership (customer_id);
