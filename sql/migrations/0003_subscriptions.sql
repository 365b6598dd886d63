-- Subscriptions with their periods and timelines, one-time purchases, which receipts hold them, and who owns them.

CREATE TYPE ledger.state AS ENUM ('active', 'grace_period', 'billing_retry', 'awaiting_renewal', 'expired', 'revoked');
COMMENT ON TYPE ledger.state IS 'The state of a subscription; active, grace_period and awaiting_renewal give access';

CREATE TYPE ledger.reason AS ENUM (
    'voluntary', 'billing_error', 'price_increase', 'product_unavailable', 'other', 'unknown',
    'refund', 'family', 'renewal', 'replacement');
COMMENT ON TYPE ledger.reason IS
    'Why a subscription is in its state: the first six belong to expired, refund, family and other to revoked, renewal '
    'and replacement to awaiting_renewal';

CREATE TABLE ledger.subscription (
    subscription_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL REFERENCES ledger.app,
    environment              ledger.environment NOT NULL,
    original_transaction_id  text NOT NULL,
    group_id                 text,
    polled_by                bigint REFERENCES ledger.receipt ON DELETE SET NULL,
    will_renew               boolean,
    next_payment             boolean,
    renewal_expected         boolean,
    renews_to_product_id     text,
    flags                    text[] NOT NULL DEFAULT '{}',
    sale                     jsonb,
    periods                  int NOT NULL DEFAULT 0,
    started_at               timestamptz,
    head_starts_at           timestamptz,
    expires_at               timestamptz,
    access_ends_at           timestamptz,
    app_account_token        text,
    leeway_ms                bigint NOT NULL DEFAULT 0,
    renewal                  jsonb,
    renewal_as_of            timestamptz,
    renewal_path             text,
    suspected                jsonb,
    as_of                    timestamptz,
    checked_at               timestamptz,
    recorded_at              timestamptz,
    next_check_at            timestamptz,
    version                  bigint NOT NULL DEFAULT 0,
    CONSTRAINT subscription_natural_key UNIQUE (app_id, environment, original_transaction_id),
    CONSTRAINT subscription_known_has_clocks CHECK (version = 0 OR num_nulls(as_of, checked_at, recorded_at) = 0),
    CONSTRAINT subscription_renews_to_only_if_it_will CHECK (renews_to_product_id IS NULL OR will_renew),
    CONSTRAINT subscription_next_check_has_poller CHECK (next_check_at IS NULL OR polled_by IS NOT NULL)
) WITH (
    fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX subscription_polled_by ON ledger.subscription (polled_by);
-- The views compare environments as text: without these the planner takes each to be rare.
CREATE STATISTICS ledger.subscription_environment ON (environment::text) FROM ledger.subscription;
COMMENT ON TABLE ledger.subscription IS
    'Subscriptions: the newest facts that belong to no single period, and the clocks. Version 0 is a row that no '
    'answer described yet';
COMMENT ON COLUMN ledger.subscription.group_id IS 'Apple''s subscription group';
COMMENT ON COLUMN ledger.subscription.polled_by IS
    'The receipt that workers ask about it: the verified one with the newest receipt_created_at';
COMMENT ON COLUMN ledger.subscription.next_payment IS
    'Whether Apple will try the next payment; null: unknown. will_renew is the customer''s will';
COMMENT ON COLUMN ledger.subscription.renewal_expected IS
    'Whether access would end at access_ends_at only because no good news came';
COMMENT ON COLUMN ledger.subscription.flags IS 'Flags of today that belong to no period, such as price_consent_pending';
COMMENT ON COLUMN ledger.subscription.sale IS
    'How the newest period is paid: plan, payment_number, payments, term_ends_at_ms, seats; null: nothing is known of it';
COMMENT ON COLUMN ledger.subscription.periods IS 'How many distinct periods it has';
COMMENT ON COLUMN ledger.subscription.head_starts_at IS
    'When the newest period begins; later than now for one that was charged ahead';
COMMENT ON COLUMN ledger.subscription.expires_at IS 'Apple''s expiry of the newest period';
COMMENT ON COLUMN ledger.subscription.access_ends_at IS 'When access ends if no newer answer comes, as known at as_of';
COMMENT ON COLUMN ledger.subscription.app_account_token IS
    'The UUID that the app gave with the purchase; it names the owner';
COMMENT ON COLUMN ledger.subscription.leeway_ms IS 'The leeway that its timeline was computed with, in milliseconds';
COMMENT ON COLUMN ledger.subscription.renewal IS 'The newest row of pending_renewal_info';
COMMENT ON COLUMN ledger.subscription.renewal_as_of IS 'Apple''s clock of that row';
COMMENT ON COLUMN ledger.subscription.renewal_path IS 'Where the row stands in Apple''s answer';
COMMENT ON COLUMN ledger.subscription.suspected IS
    'What a newer answer took back of Apple''s own words: refunds, seats, marks, an end. A second answer has to say so too';
COMMENT ON COLUMN ledger.subscription.as_of IS
    'Apple''s clock of the newest answer that was settled in full; ledger.as_of returns that of later equal ones';
COMMENT ON COLUMN ledger.subscription.checked_at IS 'When that answer came, by our clock; see ledger.checked_at';
COMMENT ON COLUMN ledger.subscription.recorded_at IS 'When the row changed last; it rises with each version';
COMMENT ON COLUMN ledger.subscription.next_check_at IS
    'When the next check is due, as planned then; null: none is. See ledger.next_check_at';
COMMENT ON COLUMN ledger.subscription.version IS 'Rises by one with each change';

CREATE TABLE ledger.receipt_subscription (
    receipt_id       bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    subscription_id  bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    omitted_at       timestamptz,
    absences         smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription_id, receipt_id),
    CONSTRAINT receipt_subscription_absences_are_omissions CHECK (absences = 0 OR omitted_at IS NOT NULL)
);
CREATE INDEX receipt_subscription_of_receipt ON ledger.receipt_subscription (receipt_id);
COMMENT ON TABLE ledger.receipt_subscription IS
    'Which verified receipts hold which subscriptions: where polling goes when the polling receipt is rejected';
COMMENT ON COLUMN ledger.receipt_subscription.omitted_at IS
    'When a verified answer about the receipt left the subscription out although the receipt polled it; null: not '
    'since an answer last held it';
COMMENT ON COLUMN ledger.receipt_subscription.absences IS
    'How many verified answers that hold purchases left the subscription out since an answer last held it, up to three; '
    'omitted_at is the time of the first of them';

CREATE TABLE ledger.period (
    period_id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id           bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    web_order_line_item_id    text,
    product_id                text NOT NULL,
    group_id                  text,
    quantity                  int NOT NULL,
    original_purchased_at     timestamptz,
    purchased_at              timestamptz NOT NULL,
    expires_at                timestamptz NOT NULL,
    cancelled_at              timestamptz,
    cancellation_reason       text,
    is_upgraded               boolean NOT NULL,
    replaced_by               text,
    is_trial                  boolean NOT NULL,
    is_intro                  boolean NOT NULL,
    promotional_offer_id      text,
    offer_code_ref_name       text,
    ownership                 text,
    app_account_token         text,
    price_milliunits          bigint,
    price_currency            text,
    revocation_percentage     int,
    sale                      jsonb,
    ending                    jsonb,
    older_facts               jsonb,
    is_renewal                boolean NOT NULL DEFAULT false,
    path                      text NOT NULL,
    as_of                     timestamptz,
    recorded_at               timestamptz NOT NULL,
    cancellation_recorded_at  timestamptz,
    facts_recorded_at         timestamptz
);
CREATE UNIQUE INDEX period_web_order_line_item ON ledger.period (subscription_id, web_order_line_item_id)
    WHERE web_order_line_item_id IS NOT NULL;
CREATE INDEX period_of_subscription ON ledger.period (subscription_id);
CREATE INDEX period_of_line_item ON ledger.period (web_order_line_item_id) WHERE web_order_line_item_id IS NOT NULL;
COMMENT ON TABLE ledger.period IS
    'The periods of subscriptions by their newest facts. A period keeps its id; its line item, an alias, or product '
    'and purchase date identify it';
COMMENT ON COLUMN ledger.period.original_purchased_at IS
    'Apple''s original_purchase_date, the start of the subscription as the row gives it';
COMMENT ON COLUMN ledger.period.cancelled_at IS 'When Apple refunded, revoked or replaced the period';
COMMENT ON COLUMN ledger.period.cancellation_reason IS
    'Apple''s cancellation_reason; or "moved to" and the original transaction id under which Apple shows the period now';
COMMENT ON COLUMN ledger.period.is_upgraded IS 'Whether another period replaced this one at once';
COMMENT ON COLUMN ledger.period.replaced_by IS 'The original transaction id of the subscription that took over';
COMMENT ON COLUMN ledger.period.ownership IS
    'Apple''s in_app_ownership_type: PURCHASED, FAMILY_SHARED or ASSIGNED; what is not PURCHASED cost another customer';
COMMENT ON COLUMN ledger.period.price_milliunits IS
    'Apple''s price of the whole quantity in thousandths of price_currency, of a group''s seats what their tiers add up '
    'to, of a term one payment; null: no signed transaction gave one, or, beside a price_currency, one that cannot be read';
COMMENT ON COLUMN ledger.period.revocation_percentage IS
    'How much of the price Apple gave back, in thousandths of a percent; null: no text stated it, or in unknown words';
COMMENT ON COLUMN ledger.period.sale IS
    'Apple''s billingPlanType, commitmentInfo, multiSeatInfo, additionalTransactionReason and revocationType: plan, '
    'payment_number, payments, term_ends_at_ms, term_price, seats, revoked_seats, one_of_several, revocation_type; null: '
    'no signed transaction stated any';
COMMENT ON COLUMN ledger.period.ending IS 'Renewal information that an answer gave about the end of this period';
COMMENT ON COLUMN ledger.period.older_facts IS
    'By field: where and when the fact comes from, if not from path and as_of; arrival: the row by which the period moved here';
COMMENT ON COLUMN ledger.period.is_renewal IS
    'Whether Apple charged for it as the subscription went on, without a purchase: docs/purchases.md has the rule';
COMMENT ON COLUMN ledger.period.path IS 'Where the row stands in Apple''s answer, such as latest_receipt_info[3]';
COMMENT ON COLUMN ledger.period.as_of IS
    'Apple''s clock of its facts; null: the newest answer of the subscription confirmed the row';
COMMENT ON COLUMN ledger.period.recorded_at IS 'When the period was stored first, by our clock';
COMMENT ON COLUMN ledger.period.cancellation_recorded_at IS
    'When its cancellation was stored, or last the number of its refunded seats, by our clock';
COMMENT ON COLUMN ledger.period.facts_recorded_at IS
    'Since when the row is as it is, in what figures depend on; null: since recorded_at. ledger.period_history has '
    'what was known before';

CREATE TABLE ledger.period_history (
    period_id                 bigint NOT NULL,
    subscription_id           bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    known                     tstzrange NOT NULL,
    product_id                text NOT NULL,
    quantity                  int NOT NULL,
    purchased_at              timestamptz NOT NULL,
    expires_at                timestamptz NOT NULL,
    cancelled_at              timestamptz,
    cancellation_reason       text,
    is_upgraded               boolean NOT NULL,
    is_trial                  boolean NOT NULL,
    is_intro                  boolean NOT NULL,
    promotional_offer_id      text,
    offer_code_ref_name       text,
    ownership                 text,
    price_milliunits          bigint,
    price_currency            text,
    revocation_percentage     int,
    sale                      jsonb,
    recorded_at               timestamptz NOT NULL,
    cancellation_recorded_at  timestamptz
);
CREATE INDEX period_history_of_subscription ON ledger.period_history (subscription_id);
COMMENT ON TABLE ledger.period_history IS 'What was known of a period before a fact changed that figures depend on';
COMMENT ON COLUMN ledger.period_history.known IS 'When that was known, by our clock; half-open';
COMMENT ON COLUMN ledger.period_history.cancellation_reason IS 'As in ledger.period';
COMMENT ON COLUMN ledger.period_history.sale IS 'As in ledger.period';

CREATE TABLE ledger.transaction_alias (
    period_id       bigint NOT NULL REFERENCES ledger.period ON DELETE CASCADE,
    transaction_id  text NOT NULL,
    PRIMARY KEY (period_id, transaction_id)
);
CREATE INDEX transaction_alias_by_id ON ledger.transaction_alias (transaction_id);
COMMENT ON TABLE ledger.transaction_alias IS 'The transaction ids under which Apple listed a period';

CREATE FUNCTION ledger.moved_periods(now_at ledger.period) RETURNS SETOF ledger.period
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT p FROM ledger.period p
    WHERE p.web_order_line_item_id = now_at.web_order_line_item_id
      AND p.is_upgraded AND p.cancellation_reason LIKE 'moved to %'
    UNION ALL
    SELECT p FROM ledger.transaction_alias here
    JOIN ledger.transaction_alias there USING (transaction_id)
    JOIN ledger.period p ON p.period_id = there.period_id
    WHERE here.period_id = now_at.period_id AND now_at.sale ->> 'one_of_several' IS NOT NULL
      AND p.is_upgraded AND p.cancellation_reason LIKE 'moved to %'
$$;
COMMENT ON FUNCTION ledger.moved_periods IS
    'What shows under which other original transaction ids a period was before: periods of the same line item, or of the same '
    'transaction where it is one of several and tells no line item, which moved away';

CREATE TABLE ledger.subscription_span (
    subscription_id  bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    valid            tstzrange NOT NULL,
    known            tstzrange NOT NULL,
    state            ledger.state NOT NULL,
    reason           ledger.reason,
    entitled         boolean NOT NULL,
    product_id       text NOT NULL,
    flags            text[] NOT NULL DEFAULT '{}',
    allowed_until    timestamptz,
    version          bigint NOT NULL,
    CONSTRAINT subscription_span_is_not_empty CHECK (NOT isempty(valid) AND NOT isempty(known)),
    CONSTRAINT subscription_span_reason_fits CHECK (
        CASE state
            WHEN 'expired' THEN reason IN
                ('voluntary', 'billing_error', 'price_increase', 'product_unavailable', 'other', 'unknown')
            WHEN 'revoked' THEN reason IN ('refund', 'family', 'other')
            WHEN 'awaiting_renewal' THEN reason IN ('renewal', 'replacement')
            ELSE reason IS NULL
        END),
    CONSTRAINT subscription_span_entitled_fits CHECK
        (entitled = (state IN ('active', 'grace_period', 'awaiting_renewal'))),
    CONSTRAINT subscription_span_allowed_only_without_access CHECK
        (allowed_until IS NULL OR (NOT entitled AND allowed_until > lower(valid))),
    CONSTRAINT subscription_span_says_one_thing EXCLUDE USING gist
        (subscription_id WITH =, valid WITH &&, known WITH &&)
);
CREATE UNIQUE INDEX subscription_span_open ON ledger.subscription_span (subscription_id, lower(valid))
    WHERE upper_inf(known);
CREATE INDEX subscription_span_allowed ON ledger.subscription_span (allowed_until)
    WHERE upper_inf(known) AND allowed_until IS NOT NULL;
-- Metrics count the subscriptions in these states now, and no span that is over.
CREATE INDEX subscription_span_unpaid ON ledger.subscription_span (COALESCE(upper(valid), 'infinity'))
    WHERE upper_inf(known) AND state IN ('grace_period', 'billing_retry');
-- When access begins and ends: what changed today is few rows among many.
CREATE INDEX subscription_span_begins ON ledger.subscription_span (lower(valid))
    WHERE upper_inf(known) AND (entitled OR allowed_until IS NOT NULL);
CREATE INDEX subscription_span_ends ON ledger.subscription_span (LEAST(allowed_until, upper(valid)))
    WHERE upper_inf(known) AND (entitled OR allowed_until IS NOT NULL);
-- What perennial.timeline compares: without these the planner takes spans that hold now to be rare.
CREATE STATISTICS ledger.span_known_until ON (upper(known)) FROM ledger.subscription_span;
CREATE STATISTICS ledger.span_valid_from ON (COALESCE(lower(valid), '-infinity')) FROM ledger.subscription_span;
CREATE STATISTICS ledger.span_valid_until ON (COALESCE(upper(valid), 'infinity')) FROM ledger.subscription_span;
COMMENT ON TABLE ledger.subscription_span IS
    'The timelines. A change closes known and adds rows; a closed row never changes. The newest timeline is the '
    'rows whose known has no end';
COMMENT ON COLUMN ledger.subscription_span.valid IS
    'When the state holds for the customer, by Apple''s clock; half-open';
COMMENT ON COLUMN ledger.subscription_span.known IS 'When Perennial recorded it, by our clock; half-open';
COMMENT ON COLUMN ledger.subscription_span.allowed_until IS
    'The end of the outage allowance. Access ends at the start of valid only because no good news came, so it goes '
    'on until allowed_until while Apple was not asked since; null: it ends';

CREATE FUNCTION ledger.is_in_outage_allowance(valid tstzrange, allowed_until timestamptz, at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT COALESCE(at >= lower(valid) AND at < allowed_until, false)
$$;
COMMENT ON FUNCTION ledger.is_in_outage_allowance IS
    'Whether the outage allowance carries access at an instant; in Swift StoredSpan.isInOutageAllowance(at:)';

CREATE TABLE ledger.purchase (
    purchase_id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL REFERENCES ledger.app,
    environment              ledger.environment NOT NULL,
    original_transaction_id  text NOT NULL,
    product_id               text NOT NULL,
    transaction_id           text,
    transaction_ids          text[] NOT NULL DEFAULT '{}',
    polled_by                bigint REFERENCES ledger.receipt,
    quantity                 int,
    purchased_at             timestamptz,
    revoked_at               timestamptz,
    app_account_token        text,
    facts                    jsonb,
    as_of                    timestamptz,
    checked_at               timestamptz,
    first_recorded_at        timestamptz,
    recorded_at              timestamptz,
    revocation_recorded_at   timestamptz,
    facts_recorded_at        timestamptz,
    next_check_at            timestamptz,
    version                  bigint NOT NULL DEFAULT 0,
    CONSTRAINT purchase_natural_key UNIQUE (app_id, environment, original_transaction_id, product_id),
    CONSTRAINT purchase_known_is_complete CHECK
        (version = 0 OR num_nulls(transaction_id, facts, quantity, purchased_at, as_of, checked_at, recorded_at) = 0),
    CONSTRAINT purchase_next_check_has_poller CHECK (next_check_at IS NULL OR polled_by IS NOT NULL)
) WITH (fillfactor = 75);
-- A settlement inserts a purchase before it reads and writes it: what it inserts is in none of these.
CREATE INDEX purchase_polled_by ON ledger.purchase (polled_by) WHERE polled_by IS NOT NULL;
CREATE INDEX purchase_of_product ON ledger.purchase ((app_id::bigint), product_id, purchase_id) WHERE purchased_at IS NOT NULL;
CREATE INDEX purchase_of_instant ON ledger.purchase (product_id, purchased_at)
    WHERE app_account_token IS NULL AND purchased_at IS NOT NULL;
CREATE STATISTICS ledger.purchase_environment ON (environment::text) FROM ledger.purchase;
COMMENT ON TABLE ledger.purchase IS
    'One-time purchases by their newest facts. Version 0 is a row that no answer described yet';
COMMENT ON COLUMN ledger.purchase.transaction_ids IS 'Every transaction id under which Apple listed the purchase';
COMMENT ON COLUMN ledger.purchase.polled_by IS 'The receipt that workers ask about it';
COMMENT ON COLUMN ledger.purchase.facts IS 'Every fact with where and when it comes from';
COMMENT ON COLUMN ledger.purchase.as_of IS
    'Apple''s clock of the newest answer that was settled in full; ledger.as_of returns that of later equal ones';
COMMENT ON COLUMN ledger.purchase.checked_at IS 'When that answer came, by our clock; see ledger.checked_at';
COMMENT ON COLUMN ledger.purchase.first_recorded_at IS 'When the purchase was stored first, by our clock';
COMMENT ON COLUMN ledger.purchase.recorded_at IS 'When the row changed last, by our clock';
COMMENT ON COLUMN ledger.purchase.revocation_recorded_at IS 'When its refund was stored, by our clock';
COMMENT ON COLUMN ledger.purchase.facts_recorded_at IS
    'Since when what figures depend on is as it is; null: since first_recorded_at. Before: ledger.purchase_history';
COMMENT ON COLUMN ledger.purchase.next_check_at IS
    'When the next look for a refund is due, as planned then; null: none is. See ledger.next_check_at';

CREATE TABLE ledger.receipt_purchase (
    receipt_id   bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    purchase_id  bigint NOT NULL REFERENCES ledger.purchase ON DELETE CASCADE,
    omitted_at   timestamptz,
    PRIMARY KEY (purchase_id, receipt_id)
);
CREATE INDEX receipt_purchase_of_receipt ON ledger.receipt_purchase (receipt_id);
COMMENT ON TABLE ledger.receipt_purchase IS 'Which verified receipts hold which one-time purchases';
COMMENT ON COLUMN ledger.receipt_purchase.omitted_at IS
    'When a verified answer about the receipt left the purchase out although the receipt polled it; null: not since '
    'an answer last held it';

CREATE TABLE ledger.purchase_history (
    purchase_id             bigint NOT NULL REFERENCES ledger.purchase ON DELETE CASCADE,
    known                   tstzrange NOT NULL,
    quantity                int NOT NULL,
    purchased_at            timestamptz NOT NULL,
    revoked_at              timestamptz,
    price_milliunits        bigint,
    price_currency          text,
    revocation_percentage   int,
    revocation_recorded_at  timestamptz
);
CREATE INDEX purchase_history_of_purchase ON ledger.purchase_history (purchase_id);
COMMENT ON TABLE ledger.purchase_history IS
    'What was known of a one-time purchase before a fact changed that figures depend on';
COMMENT ON COLUMN ledger.purchase_history.known IS 'When that was known, by our clock; half-open';

-- The clocks of a subscription or purchase, whose last answers may have been equal ones: those are written in the
-- schedule of the receipt that polls it. A poller that has no schedule row is null.
CREATE FUNCTION ledger.as_of(s ledger.subscription, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT GREATEST(s.as_of, poller.confirmed_as_of) $$;
COMMENT ON FUNCTION ledger.as_of(ledger.subscription, ledger.poll_schedule) IS
    'Apple''s clock of the newest answer about a subscription, from its row and its poller''s schedule';

CREATE FUNCTION ledger.as_of(p ledger.purchase, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT GREATEST(p.as_of, poller.confirmed_as_of) $$;
COMMENT ON FUNCTION ledger.as_of(ledger.purchase, ledger.poll_schedule) IS
    'Apple''s clock of the newest answer about a one-time purchase, from its row and its poller''s schedule';

CREATE FUNCTION ledger.checked_at(s ledger.subscription, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT GREATEST(s.checked_at, poller.confirmed_at) $$;
COMMENT ON FUNCTION ledger.checked_at(ledger.subscription, ledger.poll_schedule) IS
    'When the newest answer about a subscription came, by our clock';

CREATE FUNCTION ledger.checked_at(p ledger.purchase, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT GREATEST(p.checked_at, poller.confirmed_at) $$;
COMMENT ON FUNCTION ledger.checked_at(ledger.purchase, ledger.poll_schedule) IS
    'When the newest answer about a one-time purchase came, by our clock';

-- Renewal information speaks for the answer that holds it, also where Apple signed it: statuses are read with each history,
-- so an equal answer states it again.
CREATE FUNCTION ledger.renewal_as_of(s ledger.subscription, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN s.renewal_as_of = s.as_of THEN GREATEST(s.as_of, poller.confirmed_as_of) ELSE s.renewal_as_of END
$$;
COMMENT ON FUNCTION ledger.renewal_as_of IS
    'Apple''s clock of a subscription''s renewal row: the newest answer''s, if the newest one in full held the row';

CREATE FUNCTION ledger.next_check_at(s ledger.subscription, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN s.next_check_at IS NOT NULL AND poller.confirmed_at > s.checked_at THEN poller.scheduled_for
           ELSE s.next_check_at END
$$;
COMMENT ON FUNCTION ledger.next_check_at(ledger.subscription, ledger.poll_schedule) IS
    'When the next check of a subscription is due: after equal answers, when its poller''s is; null: none is';

CREATE FUNCTION ledger.next_check_at(p ledger.purchase, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p.next_check_at IS NOT NULL AND poller.confirmed_at > p.checked_at THEN poller.scheduled_for
           ELSE p.next_check_at END
$$;
COMMENT ON FUNCTION ledger.next_check_at(ledger.purchase, ledger.poll_schedule) IS
    'When the next look for a refund of a one-time purchase is due; null: none is';

-- A customer who only pointed at a purchase, by the bare id of a transaction or a receipt for which Apple never vouched, owns
-- what no other one claims, and gets no delivery of it.
CREATE TABLE ledger.ownership (
    ownership_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    customer_id      bigint NOT NULL REFERENCES ledger.customer,
    cause            text,
    valid            tstzrange NOT NULL,
    known            tstzrange NOT NULL,
    CONSTRAINT ownership_of_one_thing CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT ownership_of_subscription_says_one_thing EXCLUDE USING gist
        (subscription_id WITH =, valid WITH &&, known WITH &&) WHERE (subscription_id IS NOT NULL),
    CONSTRAINT ownership_of_purchase_says_one_thing EXCLUDE USING gist
        (purchase_id WITH =, valid WITH &&, known WITH &&) WHERE (purchase_id IS NOT NULL),
    CONSTRAINT ownership_cause_known
        CHECK (cause IN ('upload', 'import', 'token', 'proof', 'merge', 'split', 'assignment', 'pointer'))
);
CREATE INDEX ownership_of_customer ON ledger.ownership (customer_id);
COMMENT ON TABLE ledger.ownership IS
    'Which customer owned which subscription or one-time purchase. A change closes known and adds a row; a closed '
    'row never changes';
COMMENT ON COLUMN ledger.ownership.cause IS
    'Why the customer owns it: an upload or an import of theirs, the app_account_token in it, a proof of their order, a '
    'merge, its undoing (split), a manual assignment, or that they only pointed at it; null: unknown';
COMMENT ON COLUMN ledger.ownership.valid IS 'When the customer owned it; half-open';
COMMENT ON COLUMN ledger.ownership.known IS 'When Perennial recorded it, by our clock; half-open';

CREATE FUNCTION ledger.claim_of(held ledger.ownership) RETURNS ledger.ownership
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    claim ledger.ownership := held;
    former ledger.ownership;
BEGIN
    WHILE claim.cause IN ('merge', 'split', 'pointer') LOOP
        SELECT o.* INTO former FROM ledger.ownership o
        WHERE (o.purchase_id = claim.purchase_id OR o.subscription_id = claim.subscription_id)
          AND upper_inf(o.known) AND upper(o.valid) = lower(claim.valid)
          -- A pointer stays one; after an erasure another customer pointed.
          AND (claim.cause <> 'pointer' OR o.cause = 'pointer' AND EXISTS (
              SELECT FROM ledger.customer c WHERE c.customer_id = o.customer_id AND c.erased_at IS NULL));
        EXIT WHEN NOT FOUND;
        claim := former;
    END LOOP;
    RETURN claim;
END $$;
COMMENT ON FUNCTION ledger.claim_of IS
    'The ownership that merges and splits of customers passed on: whose it was, and why, before names moved';

CREATE FUNCTION ledger.is_shared(ownership text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT COALESCE(ownership, 'PURCHASED') <> 'PURCHASED'
$$;
COMMENT ON FUNCTION ledger.is_shared IS
    'Whether another customer paid: a family share, a seat of a group, or an ownership that is not known. Rows of a time '
    'without ownership were bought';

CREATE FUNCTION ledger.looks_monthly(period text, purchased_at timestamptz, expires_at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT period = 'P1Y' AND expires_at - purchased_at BETWEEN interval '28 days' AND interval '31 days 2 hours'
$$;
COMMENT ON FUNCTION ledger.looks_monthly IS
    'Whether a paid row without any offer is probably one payment of a term: a month of a product that the catalog calls '
    'a year. verifyReceipt shows nothing else of it';

CREATE FUNCTION ledger.is_moved(is_upgraded boolean, cancellation_reason text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT is_upgraded AND COALESCE(cancellation_reason LIKE 'moved to %', false)
$$;
COMMENT ON FUNCTION ledger.is_moved IS
    'Whether Apple shows a period under another original transaction id now, where it is the same charge';

CREATE FUNCTION ledger.is_rest_refunded(
    is_upgraded boolean, revocation_percentage int, purchased_at timestamptz, expires_at timestamptz,
    cancelled_at timestamptz, followed_at timestamptz)
RETURNS boolean
-- Not immutable, as the sum of an instant and an interval is not: the planner would not put it where it is used.
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT COALESCE(
        is_upgraded AND revocation_percentage = 100000 AND cancelled_at >= purchased_at
            AND COALESCE(cancelled_at NOT BETWEEN followed_at - interval '1 minute' AND followed_at + interval '1 minute',
                         cancelled_at >= expires_at), false)
$$;
COMMENT ON FUNCTION ledger.is_rest_refunded IS
    'Whether Apple refunded the rest of a replaced period: the replacement brings a repayment that is dated as the next '
    'period, at followed_at, so a refund of the whole price with another date came beside it. Swift has the same rule as '
    'Period.restRefundedAt';
