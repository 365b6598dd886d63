-- Rows that a worker keeps of each subscription's history, so that reports of what is known now need not read it.

-- Reports read these rows of subscriptions that were not written since, at today's catalog, and the history of others.
CREATE TABLE ledger.summarised (
    subscription_id  bigint PRIMARY KEY REFERENCES ledger.subscription ON DELETE CASCADE,
    recorded_at      timestamptz,
    price_mark       uuid
) WITH (fillfactor = 75);
COMMENT ON TABLE ledger.summarised IS 'The subscriptions that have rows in the next four tables';
COMMENT ON COLUMN ledger.summarised.recorded_at IS 'recorded_at of the subscription that the rows describe';
COMMENT ON COLUMN ledger.summarised.price_mark IS
    'The prices of the rows (ledger.price_mark); null: an upload reported a price since';

CREATE TABLE ledger.summary_paying (
    subscription_id     bigint NOT NULL REFERENCES ledger.summarised ON DELETE CASCADE,
    charge_id           bigint NOT NULL,
    product_id          text NOT NULL,
    paying_from         timestamptz NOT NULL,
    paying_until        timestamptz NOT NULL,
    ended_state         text,
    ended_reason        text,
    offer               text,
    monthly_milliunits  bigint,
    currency            text,
    price_basis         text NOT NULL
);
CREATE INDEX summary_paying_of_subscription ON ledger.summary_paying (subscription_id);
CREATE INDEX summary_paying_begins ON ledger.summary_paying (paying_from);
CREATE INDEX summary_paying_ends ON ledger.summary_paying (paying_until);
COMMENT ON TABLE ledger.summary_paying IS 'What ledger.paying_of returns for a summarised subscription as known now';

CREATE TABLE ledger.summary_revenue (
    subscription_id      bigint NOT NULL REFERENCES ledger.summarised ON DELETE CASCADE,
    charge_id            bigint NOT NULL,
    kind                 text NOT NULL,
    occurred_at          timestamptz NOT NULL,
    product_id           text NOT NULL,
    purchased_at         timestamptz NOT NULL,
    offer                text,
    storefront           text,
    amount_milliunits    bigint,
    currency             text,
    price_basis          text NOT NULL,
    commission_percent   int NOT NULL,
    commission_reason    text NOT NULL,
    proceeds_milliunits  bigint,
    recorded_at          timestamptz
);
CREATE INDEX summary_revenue_of_subscription ON ledger.summary_revenue (subscription_id);
CREATE STATISTICS ledger.summary_revenue_groups (ndistinct)
    ON kind, product_id, currency, price_basis, commission_percent, commission_reason FROM ledger.summary_revenue;
-- The number of distinct instants (n_distinct) is set by hand. Reports group by whole days and months, which are few; a
-- planner that expects a group for each instant would sort all rows. CREATE TABLE cannot set n_distinct.
ALTER TABLE ledger.summary_revenue
    ALTER COLUMN occurred_at SET (n_distinct = 2000),
    ALTER COLUMN purchased_at SET (n_distinct = 2000);
COMMENT ON TABLE ledger.summary_revenue IS
    'What ledger.revenue_of returns for a summarised subscription as known now';

CREATE TABLE ledger.summary_renewal (
    subscription_id    bigint NOT NULL REFERENCES ledger.summarised ON DELETE CASCADE,
    product_id         text NOT NULL,
    expires_at         timestamptz NOT NULL,
    next_purchased_at  timestamptz,
    next_is_paid       boolean,
    was_awaited        boolean NOT NULL
);
CREATE INDEX summary_renewal_of_subscription ON ledger.summary_renewal (subscription_id);
ALTER TABLE ledger.summary_renewal ALTER COLUMN expires_at SET (n_distinct = 2000);
COMMENT ON TABLE ledger.summary_renewal IS
    'What ledger.renewals_of returns for a summarised subscription as known now';

CREATE TABLE ledger.summary_trial (
    subscription_id  bigint NOT NULL REFERENCES ledger.summarised ON DELETE CASCADE,
    product_id       text NOT NULL,
    started_at       timestamptz NOT NULL,
    ends_at          timestamptz NOT NULL,
    paid_at          timestamptz,
    refunded_at      timestamptz,
    lost_at          timestamptz
);
CREATE INDEX summary_trial_of_subscription ON ledger.summary_trial (subscription_id);
COMMENT ON TABLE ledger.summary_trial IS
    'What ledger.trial_runs_of returns for a summarised subscription as known now';

CREATE FUNCTION ledger.unsummarise_priced() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.summarised s SET price_mark = NULL
    FROM (
        SELECT l.subscription_id FROM ledger.receipt_subscription l
        JOIN ledger.summarised known USING (subscription_id)
        WHERE l.receipt_id = NEW.receipt_id ORDER BY l.subscription_id FOR UPDATE OF known) l
    WHERE s.subscription_id = l.subscription_id;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION ledger.unsummarise_priced IS
    'Marks the subscriptions of a receipt with a newly reported price: reports read their history until a worker '
    'makes the rows anew';

CREATE TRIGGER stated_price_unsummarises AFTER INSERT ON ledger.stated_price
    FOR EACH ROW EXECUTE FUNCTION ledger.unsummarise_priced();

CREATE TABLE ledger.summary_progress (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position       bigint NOT NULL DEFAULT 0,
    round_at       bigint NOT NULL DEFAULT 0,
    rounds         bigint NOT NULL DEFAULT 0,
    price_mark     uuid,
    summarised_at  timestamptz
);
COMMENT ON TABLE ledger.summary_progress IS
    'How far the summaries are, one row. The feed shows what changed; rounds through all subscriptions find what no '
    'event shows, such as a corrected price';
COMMENT ON COLUMN ledger.summary_progress.position IS 'The position up to which the worker has read the feed';
COMMENT ON COLUMN ledger.summary_progress.round_at IS 'The last subscription of the current round';
COMMENT ON COLUMN ledger.summary_progress.rounds IS
    'Whole rounds so far; until the first is over the sums lack subscriptions';
COMMENT ON COLUMN ledger.summary_progress.price_mark IS
    'The prices of the current or last round; at other prices the round begins anew';
INSERT INTO ledger.summary_progress DEFAULT VALUES;

CREATE VIEW perennial.summary_now AS
SELECT p.position, (SELECT COALESCE(max(f.position), 0) FROM ledger.event_feed f) - p.position AS events_behind,
       p.rounds > 0 AS is_complete, p.summarised_at
FROM ledger.summary_progress p;
COMMENT ON VIEW perennial.summary_now IS 'How far the summaries are behind the feed, one row';

-- The condition of the next two views is one expression that the planner knows nothing about, else it takes either to
-- be rare.
CREATE VIEW perennial.summarised AS
SELECT s.subscription_id AS stream_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
JOIN ledger.price_mark m USING (app_id)
JOIN ledger.summarised t USING (subscription_id)
JOIN ledger.summary_progress p ON p.rounds > 0
WHERE COALESCE(t.price_mark = m.price_mark AND (t.recorded_at = s.recorded_at OR s.recorded_at IS NULL), false);
COMMENT ON VIEW perennial.summarised IS
    'The subscriptions whose summary rows hold; none before the first round is over';

CREATE VIEW perennial.unsummarised AS
SELECT s.subscription_id AS stream_id
FROM ledger.subscription s
JOIN ledger.price_mark m USING (app_id)
LEFT JOIN ledger.summarised t USING (subscription_id)
WHERE NOT COALESCE(t.price_mark = m.price_mark AND (t.recorded_at = s.recorded_at OR s.recorded_at IS NULL), false);
COMMENT ON VIEW perennial.unsummarised IS 'The subscriptions whose history reports read instead of summary rows';

CREATE VIEW perennial.summary_paying AS
SELECT k.bundle_id, k.environment, k.stream_id, p.charge_id, k.original_transaction_id, p.product_id, p.paying_from,
       p.paying_until, p.ended_state, p.ended_reason, p.offer, p.monthly_milliunits, p.currency, p.price_basis
FROM ledger.summary_paying p JOIN perennial.summarised k ON k.stream_id = p.subscription_id;
COMMENT ON VIEW perennial.summary_paying IS 'Stretches of paying at one price, of summarised subscriptions';

CREATE VIEW perennial.summary_revenue AS
SELECT r.occurred_at, k.bundle_id, k.environment, 'subscription' AS charge_kind, k.stream_id, r.charge_id,
       k.original_transaction_id, r.kind, r.product_id, r.purchased_at, r.offer, r.storefront, r.amount_milliunits,
       r.currency, r.price_basis, r.commission_percent, r.commission_reason, r.proceeds_milliunits, r.recorded_at
FROM ledger.summary_revenue r JOIN perennial.summarised k ON k.stream_id = r.subscription_id;
COMMENT ON VIEW perennial.summary_revenue IS 'Charges, refunds and prorations of summarised subscriptions';

CREATE VIEW perennial.summary_renewal AS
SELECT k.bundle_id, k.environment, k.stream_id, r.product_id, r.expires_at, r.next_purchased_at, r.next_is_paid,
       r.was_awaited
FROM ledger.summary_renewal r JOIN perennial.summarised k ON k.stream_id = r.subscription_id;
COMMENT ON VIEW perennial.summary_renewal IS 'Paid periods that come to their end, of summarised subscriptions';

CREATE VIEW perennial.summary_trial AS
SELECT k.bundle_id, k.environment, k.stream_id, k.original_transaction_id, t.product_id, t.started_at, t.ends_at,
       t.paid_at, t.refunded_at, t.lost_at
FROM ledger.summary_trial t JOIN perennial.summarised k ON k.stream_id = t.subscription_id;
COMMENT ON VIEW perennial.summary_trial IS 'Trials of summarised subscriptions';

-- The functions named …_from_history are in PL/pgSQL. PostgreSQL does not inline such a function, and with
-- force_custom_plan it plans each call with the actual array of subscriptions.
CREATE FUNCTION ledger.unsummarised_streams(known_at timestamptz, streams bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN streams IS NULL AND known_at = 'infinity' AND (SELECT is_complete FROM perennial.summary_now)
                THEN ARRAY(SELECT stream_id FROM perennial.unsummarised) ELSE streams END
$$;
COMMENT ON FUNCTION ledger.unsummarised_streams IS
    'The subscriptions whose history a report has to read at known_at: all (null), the given streams, or, for what '
    'is known now, those whose summary rows do not hold';

CREATE FUNCTION ledger.paying_from_history(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    unread bigint[] := ledger.unsummarised_streams(known_at, streams);
BEGIN
    RETURN QUERY SELECT * FROM ledger.paying_of(known_at, unread);
END $$;
COMMENT ON FUNCTION ledger.paying_from_history IS 'ledger.paying_of for the subscriptions of ledger.unsummarised_streams';

CREATE FUNCTION ledger.paying_combined(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_paying WHERE known_at = 'infinity' AND streams IS NULL
    UNION ALL
    SELECT * FROM ledger.paying_from_history(known_at, streams)
$$;
COMMENT ON FUNCTION ledger.paying_combined IS
    'ledger.paying_of, from summary rows where they hold and else from the history';

CREATE FUNCTION perennial.paying_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM ledger.paying_combined(known_at, NULL)
$$;
COMMENT ON FUNCTION perennial.paying_as_known IS
    'Stretches of paying at one price, of every subscription, as known at an instant (ledger.paying_of)';

CREATE FUNCTION ledger.revenue_from_history(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    unread bigint[] := ledger.unsummarised_streams(known_at, NULL);
BEGIN
    RETURN QUERY SELECT * FROM ledger.revenue_of(known_at, unread) r WHERE r.charge_kind = 'subscription';
END $$;
COMMENT ON FUNCTION ledger.revenue_from_history IS
    'ledger.revenue_of for the subscriptions of ledger.unsummarised_streams, without one-time purchases';

CREATE FUNCTION ledger.purchase_revenue(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT * FROM ledger.revenue_of(known_at, NULL) r WHERE r.charge_kind = 'purchase';
END $$;
COMMENT ON FUNCTION ledger.purchase_revenue IS
    'ledger.revenue_of for one-time purchases, always from the history: they are few. It is PL/pgSQL, so that '
    'parallel workers may do the rest of a report';

CREATE FUNCTION perennial.revenue_as_known(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_revenue WHERE known_at = 'infinity'
    UNION ALL
    SELECT r.occurred_at, r.bundle_id, r.environment, 'subscription', r.stream_id, r.charge_id,
           r.original_transaction_id, r.kind, r.product_id, r.purchased_at, r.offer, r.storefront, r.amount_milliunits,
           r.currency, r.price_basis, r.commission_percent, r.commission_reason, r.proceeds_milliunits, r.recorded_at
    FROM ledger.revenue_from_history(known_at) r
    UNION ALL
    SELECT p.occurred_at, p.bundle_id, p.environment, 'purchase', p.stream_id, p.charge_id, p.original_transaction_id,
           p.kind, p.product_id, p.purchased_at, p.offer, p.storefront, p.amount_milliunits, p.currency, p.price_basis,
           p.commission_percent, p.commission_reason, p.proceeds_milliunits, p.recorded_at
    FROM ledger.purchase_revenue(known_at) p
$$;
COMMENT ON FUNCTION perennial.revenue_as_known IS
    'Every charge, refund and proration with Apple''s commission, as known at an instant (ledger.revenue_of)';

CREATE VIEW perennial.revenue_event AS
SELECT r.occurred_at, r.bundle_id, r.environment, c.name AS customer, r.original_transaction_id, r.kind, r.product_id,
       r.amount_milliunits, r.currency, r.price_basis, r.recorded_at
FROM perennial.revenue_as_known('infinity') r
LEFT JOIN ledger.ownership s
    ON r.charge_kind = 'subscription' AND s.subscription_id = r.stream_id AND upper_inf(s.known) AND s.valid @> now()
LEFT JOIN ledger.ownership p
    ON r.charge_kind = 'purchase' AND p.purchase_id = r.stream_id AND upper_inf(p.known) AND p.valid @> now()
LEFT JOIN ledger.customer c ON c.customer_id = COALESCE(s.customer_id, p.customer_id);
COMMENT ON VIEW perennial.revenue_event IS
    'Charges, refunds and prorations as known now, signed, so that a sum is net revenue; an unknown amount is null';

CREATE FUNCTION ledger.renewals_from_history(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    unread bigint[] := ledger.unsummarised_streams(known_at, NULL);
BEGIN
    RETURN QUERY SELECT * FROM ledger.renewals_of(known_at, unread);
END $$;
COMMENT ON FUNCTION ledger.renewals_from_history IS 'ledger.renewals_of for the subscriptions of ledger.unsummarised_streams';

CREATE FUNCTION perennial.renewals_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_renewal WHERE known_at = 'infinity'
    UNION ALL
    SELECT * FROM ledger.renewals_from_history(known_at)
$$;
COMMENT ON FUNCTION perennial.renewals_as_known IS
    'The paid periods that come to their end, of every subscription, as known at an instant (ledger.renewals_of)';

CREATE FUNCTION ledger.trial_runs_from_history(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz, refunded_at timestamptz, lost_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    unread bigint[] := ledger.unsummarised_streams(known_at, streams);
BEGIN
    RETURN QUERY SELECT * FROM ledger.trial_runs_of(known_at, unread);
END $$;
COMMENT ON FUNCTION ledger.trial_runs_from_history IS
    'ledger.trial_runs_of for the subscriptions of ledger.unsummarised_streams';

CREATE FUNCTION ledger.trial_runs_combined(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz, refunded_at timestamptz, lost_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_trial WHERE known_at = 'infinity' AND streams IS NULL
    UNION ALL
    SELECT * FROM ledger.trial_runs_from_history(known_at, streams)
$$;
COMMENT ON FUNCTION ledger.trial_runs_combined IS
    'ledger.trial_runs_of, from summary rows where they hold and else from the history';
