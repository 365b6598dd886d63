-- Reports at a million subscriptions: what each one's history comes to is kept beside the summaries, by the same job.

-- What everything costs that is priced from the catalog, and when Apple keeps less, as one mark per app: another mark,
-- other figures.
CREATE VIEW ledger.price_mark AS
SELECT l.app_id, md5(string_agg(l.line, ',' ORDER BY l.line COLLATE "C"))::uuid AS price_mark
FROM (
    SELECT a.app_id, '' AS line FROM ledger.app a
    UNION ALL
    SELECT p.app_id, format('%L %L %s %s %s %s', p.product_id, p.storefront, extract(epoch FROM lower(p.valid)),
                            extract(epoch FROM upper(p.valid)), p.price_milliunits, p.currency)
    FROM ledger.product_price p WHERE upper_inf(p.known)
    UNION ALL
    SELECT d.app_id, format('%L %L', d.product_id, d.period) FROM ledger.product d
    UNION ALL
    SELECT b.app_id, format('%s %s', extract(epoch FROM lower(b.valid)), extract(epoch FROM upper(b.valid)))
    FROM ledger.small_business b WHERE upper_inf(b.known)) l
GROUP BY l.app_id;

-- Which subscriptions have their rows below: as the subscription was written last at recorded_at, at the prices of
-- price_mark. Null: a price was said since.
CREATE TABLE ledger.summarised (
    subscription_id  bigint PRIMARY KEY REFERENCES ledger.subscription ON DELETE CASCADE,
    recorded_at      timestamptz,
    price_mark       uuid
) WITH (fillfactor = 75);

-- What the functions paying_of, revenue_of, renewals_of and trial_runs_of say of each subscription as known now.
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

CREATE TABLE ledger.summary_revenue (
    subscription_id       bigint NOT NULL REFERENCES ledger.summarised ON DELETE CASCADE,
    charge_id             bigint NOT NULL,
    kind                  text NOT NULL,
    occurred_at           timestamptz NOT NULL,
    product_id            text NOT NULL,
    purchased_at          timestamptz NOT NULL,
    offer                 text,
    storefront            text,
    amount_milliunits     bigint,
    currency              text,
    price_basis           text NOT NULL,
    commission_percent    int NOT NULL,
    commission_reason     text NOT NULL,
    proceeds_milliunits   bigint,
    recorded_at           timestamptz
);
CREATE INDEX summary_revenue_of_subscription ON ledger.summary_revenue (subscription_id);
-- Reports ask for whole days and months: a planner who takes every instant for a group of its own would sort them all.
ALTER TABLE ledger.summary_revenue
    ALTER COLUMN occurred_at SET (n_distinct = 2000), ALTER COLUMN purchased_at SET (n_distinct = 2000);
CREATE STATISTICS ledger.summary_revenue_groups (ndistinct)
    ON kind, product_id, currency, price_basis, commission_percent, commission_reason FROM ledger.summary_revenue;

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

CREATE TABLE ledger.summary_trial (
    subscription_id  bigint NOT NULL REFERENCES ledger.summarised ON DELETE CASCADE,
    product_id       text NOT NULL,
    started_at       timestamptz NOT NULL,
    ends_at          timestamptz NOT NULL,
    paid_at          timestamptz
);
CREATE INDEX summary_trial_of_subscription ON ledger.summary_trial (subscription_id);

-- A price that is said of what was summarised already: its rows are told from the history until they are made anew.
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
CREATE INDEX receipt_subscription_of_receipt ON ledger.receipt_subscription (receipt_id);
CREATE TRIGGER said_price_unsummarises AFTER INSERT ON ledger.said_price
    FOR EACH ROW EXECUTE FUNCTION ledger.unsummarise_priced();

-- The prices by which the round that is under way, or was the last, summarised: at others it begins anew.
ALTER TABLE ledger.summary_progress ADD COLUMN price_mark uuid;
UPDATE ledger.summary_progress SET rounds = 0, round_at = 0;

-- What the timeline asks of spans: without these the planner takes those that hold now for rare.
CREATE STATISTICS ledger.span_known_until ON (upper(known)) FROM ledger.subscription_span;
CREATE STATISTICS ledger.span_valid_from ON (COALESCE(lower(valid), '-infinity')) FROM ledger.subscription_span;
CREATE STATISTICS ledger.span_valid_until ON (COALESCE(upper(valid), 'infinity')) FROM ledger.subscription_span;

-- The subscriptions whose rows can be told, and those whose rows cannot; none can before the first round is over. The
-- condition is one expression that the planner knows nothing of, else it would take either for rare.
CREATE VIEW perennial.summarised AS
SELECT s.subscription_id AS stream_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
JOIN ledger.price_mark m USING (app_id)
JOIN ledger.summarised t USING (subscription_id)
JOIN ledger.summary_progress p ON p.rounds > 0
WHERE COALESCE(t.price_mark = m.price_mark AND (t.recorded_at = s.recorded_at OR s.recorded_at IS NULL), false);
CREATE VIEW perennial.unsummarised AS
SELECT s.subscription_id AS stream_id
FROM ledger.subscription s
JOIN ledger.price_mark m USING (app_id)
LEFT JOIN ledger.summarised t USING (subscription_id)
WHERE NOT COALESCE(t.price_mark = m.price_mark AND (t.recorded_at = s.recorded_at OR s.recorded_at IS NULL), false);

-- Whose history has to be read at known_at: nobody else's (streams), everybody's (null), or theirs whose rows cannot be told.
CREATE FUNCTION perennial.untold(known_at timestamptz, streams bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN streams IS NULL AND known_at = 'infinity' AND (SELECT is_complete FROM perennial.summary_now)
                THEN ARRAY(SELECT stream_id FROM perennial.unsummarised) ELSE streams END
$$;

-- Stretches of paying, from the rows where they can be told and else from the history. Beneath: the rows, and the history
-- in PL/pgSQL, so that its plan knows which subscriptions it is for.
CREATE VIEW perennial.summary_paying AS
SELECT k.bundle_id, k.environment, k.stream_id, p.charge_id, k.original_transaction_id, p.product_id, p.paying_from,
       p.paying_until, p.ended_state, p.ended_reason, p.offer, p.monthly_milliunits, p.currency, p.price_basis
FROM ledger.summary_paying p JOIN perennial.summarised k ON k.stream_id = p.subscription_id;
CREATE FUNCTION perennial.untold_paying(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    untold bigint[] := perennial.untold(known_at, streams);
BEGIN
    RETURN QUERY SELECT * FROM perennial.paying_of(known_at, untold);
END $$;
CREATE FUNCTION perennial.paying_told(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_paying WHERE known_at = 'infinity' AND streams IS NULL
    UNION ALL
    SELECT * FROM perennial.untold_paying(known_at, streams)
$$;

-- As before, told as above.
CREATE OR REPLACE FUNCTION perennial.paying_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.paying_told(known_at, NULL)
$$;
CREATE OR REPLACE FUNCTION perennial.paying_days_of(known_at timestamptz, time_zone text, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, next_first_day date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, d.product_id, d.first_day, d.end_day,
           d.ended_state, d.ended_reason, d.offer, d.monthly_milliunits, d.currency, d.price_basis,
           lag(d.product_id) OVER stream, lag(d.end_day) OVER stream, lag(d.monthly_milliunits) OVER stream,
           lag(d.currency) OVER stream, lag(d.price_basis) OVER stream, lead(d.first_day) OVER stream
    FROM (
        SELECT p.*, (p.paying_from AT TIME ZONE time_zone)::date AS first_day,
               (p.paying_until AT TIME ZONE time_zone)::date AS end_day
        FROM perennial.paying_told(known_at, streams) p) d
    WHERE d.first_day < d.end_day
    WINDOW stream AS (PARTITION BY d.stream_id ORDER BY d.first_day)
$$;

-- Revenue, told in the same way; one-time purchases are few and always from the history, in PL/pgSQL so that parallel
-- workers may do the rest.
CREATE VIEW perennial.summary_revenue AS
SELECT r.occurred_at, k.bundle_id, k.environment, 'subscription' AS charge_kind, k.stream_id, r.charge_id,
       k.original_transaction_id, r.kind, r.product_id, r.purchased_at, r.offer, r.storefront, r.amount_milliunits,
       r.currency, r.price_basis, r.commission_percent, r.commission_reason, r.proceeds_milliunits, r.recorded_at
FROM ledger.summary_revenue r JOIN perennial.summarised k ON k.stream_id = r.subscription_id;
CREATE FUNCTION perennial.untold_revenue(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    untold bigint[] := perennial.untold(known_at, NULL);
BEGIN
    RETURN QUERY SELECT * FROM perennial.revenue_of(known_at, untold) r WHERE r.charge_kind = 'subscription';
END $$;
CREATE FUNCTION perennial.purchase_revenue(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 10000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT * FROM perennial.revenue_of(known_at, NULL) r WHERE r.charge_kind = 'purchase';
END $$;
CREATE OR REPLACE FUNCTION perennial.revenue_as_known(known_at timestamptz)
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_revenue WHERE known_at = 'infinity'
    UNION ALL
    SELECT r.occurred_at, r.bundle_id, r.environment, 'subscription', r.stream_id, r.charge_id, r.original_transaction_id,
           r.kind, r.product_id, r.purchased_at, r.offer, r.storefront, r.amount_milliunits, r.currency, r.price_basis,
           r.commission_percent, r.commission_reason, r.proceeds_milliunits, r.recorded_at
    FROM perennial.untold_revenue(known_at) r
    UNION ALL
    SELECT p.occurred_at, p.bundle_id, p.environment, 'purchase', p.stream_id, p.charge_id, p.original_transaction_id,
           p.kind, p.product_id, p.purchased_at, p.offer, p.storefront, p.amount_milliunits, p.currency, p.price_basis,
           p.commission_percent, p.commission_reason, p.proceeds_milliunits, p.recorded_at
    FROM perennial.purchase_revenue(known_at) p
$$;

-- The paid periods that come to their end, neither refunded before nor replaced, with what came next, and whether a
-- renewal was awaited, or tried, when it was late.
CREATE FUNCTION perennial.renewals_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.bundle_id, k.environment, p.stream_id, p.product_id, p.expires_at, p.next_purchased_at, p.next_is_paid,
           COALESCE(p.next_purchased_at > p.expires_at, false) AND EXISTS (
               SELECT FROM perennial.timeline t
               WHERE t.subscription_id = p.stream_id AND t.valid_from <= p.expires_at AND p.expires_at < t.valid_until
                 AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
                 AND t.state IN ('grace_period', 'billing_retry', 'awaiting_renewal'))
    FROM (
        SELECT c.stream_id, c.product_id, c.expires_at, paid.is_paid,
               NOT c.is_upgraded AND COALESCE(c.cancelled_at >= c.expires_at, true) AS comes_to_its_end,
               lead(c.purchased_at) OVER stream AS next_purchased_at, lead(paid.is_paid) OVER stream AS next_is_paid
        FROM perennial.period_told c
        -- What is neither a trial nor shared by the family was paid for.
        CROSS JOIN LATERAL (SELECT NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial' AS is_paid) paid
        WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
          AND COALESCE(c.cancelled_at > c.purchased_at, true) AND (streams IS NULL OR c.stream_id = ANY (streams))
        WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.expires_at, c.charge_id)) p
    JOIN perennial.subscription_key k USING (stream_id)
    WHERE p.is_paid AND p.comes_to_its_end
$$;
CREATE VIEW perennial.summary_renewal AS
SELECT k.bundle_id, k.environment, k.stream_id, r.product_id, r.expires_at, r.next_purchased_at, r.next_is_paid,
       r.was_awaited
FROM ledger.summary_renewal r JOIN perennial.summarised k ON k.stream_id = r.subscription_id;
CREATE FUNCTION perennial.untold_renewals(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    untold bigint[] := perennial.untold(known_at, NULL);
BEGIN
    RETURN QUERY SELECT * FROM perennial.renewals_of(known_at, untold);
END $$;
CREATE FUNCTION perennial.renewals_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_renewal WHERE known_at = 'infinity'
    UNION ALL
    SELECT * FROM perennial.untold_renewals(known_at)
$$;

-- Trials of one subscription that follow each other, as one, and the first charge after them.
CREATE FUNCTION perennial.trial_runs_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, min(p.product_id), min(p.purchased_at),
           max(LEAST(p.expires_at, p.cancelled_at)), min(p.paid_at)
    FROM (
        SELECT b.*, count(*) FILTER (WHERE b.begins) OVER (
                   PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id) AS run,
               min(b.purchased_at) FILTER (WHERE b.offer IS DISTINCT FROM 'trial') OVER (
                   PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id
                   ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS paid_at
        FROM (
            SELECT c.*, lag(c.offer) OVER (
                       PARTITION BY c.stream_id ORDER BY c.purchased_at, c.charge_id) IS DISTINCT FROM c.offer AS begins
            FROM perennial.period_history c
            WHERE NOT c.is_family_shared AND COALESCE(c.cancelled_at > c.purchased_at, true)
              AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
              AND (streams IS NULL OR c.stream_id = ANY (streams))
              AND c.stream_id IN (
                  SELECT h.stream_id FROM perennial.period_told h
                  WHERE h.offer = 'trial' AND (streams IS NULL OR h.stream_id = ANY (streams)))) b) p
    WHERE p.offer = 'trial'
    GROUP BY p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, p.run
$$;
CREATE VIEW perennial.summary_trial AS
SELECT k.bundle_id, k.environment, k.stream_id, k.original_transaction_id, t.product_id, t.started_at, t.ends_at, t.paid_at
FROM ledger.summary_trial t JOIN perennial.summarised k ON k.stream_id = t.subscription_id;
CREATE FUNCTION perennial.untold_trial_runs(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    untold bigint[] := perennial.untold(known_at, streams);
BEGIN
    RETURN QUERY SELECT * FROM perennial.trial_runs_of(known_at, untold);
END $$;
CREATE FUNCTION perennial.trial_runs_told(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM perennial.summary_trial WHERE known_at = 'infinity' AND streams IS NULL
    UNION ALL
    SELECT * FROM perennial.untold_trial_runs(known_at, streams)
$$;

-- As before, told as above. What Apple charges ahead has not happened until its date.
CREATE OR REPLACE FUNCTION perennial.trials_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           o.outcome,
           CASE o.outcome WHEN 'converted' THEN c.paid_at
                          WHEN 'lost' THEN CASE WHEN c.paid_at IS NULL THEN t.valid_from ELSE r.ends_at END END
    FROM perennial.trial_runs_told(known_at, streams) r
    LEFT JOIN perennial.timeline t
        ON t.subscription_id = r.stream_id
        AND t.valid_from <= LEAST(known_at, now()) AND LEAST(known_at, now()) < t.valid_until
        AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
    CROSS JOIN LATERAL (SELECT CASE WHEN r.paid_at <= LEAST(known_at, now()) THEN r.paid_at END AS paid_at) c
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.paid_at <= r.ends_at + interval '65 days' THEN 'converted'
                    WHEN c.paid_at IS NOT NULL THEN 'lost'
                    WHEN r.ends_at > LEAST(known_at, now()) THEN 'running'
                    WHEN t.state IN ('expired', 'revoked')
                        AND COALESCE(t.access_until <= LEAST(known_at, now()), true) THEN 'lost'
                    ELSE 'pending' END AS outcome) o
    WHERE r.started_at <= LEAST(known_at, now())
$$;

-- How many calendar months lie between two instants, the second a day earlier.
CREATE FUNCTION perennial.month_difference(began_at timestamptz, before timestamptz) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (12 * (date_part('year', (before AT TIME ZONE 'UTC') - interval '1 day')
                  - date_part('year', began_at AT TIME ZONE 'UTC'))
            + date_part('month', (before AT TIME ZONE 'UTC') - interval '1 day')
            - date_part('month', began_at AT TIME ZONE 'UTC'))::int
$$;
-- How many monthly anniversaries of an instant had come before another one, as before; one expression, which the planner puts
-- where it is used.
CREATE OR REPLACE FUNCTION perennial.anniversaries(began_at timestamptz, before timestamptz) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT GREATEST(0, perennial.month_difference(began_at, before) - (
        (began_at AT TIME ZONE 'UTC') + perennial.month_difference(began_at, before) * interval '1 month'
            >= (before AT TIME ZONE 'UTC') - interval '1 day')::int)
$$;

-- A recomputation reads every history, and no row that is kept: naming all subscriptions says so.
CREATE FUNCTION perennial.shares_recomputed()
RETURNS TABLE (
    subscription_id bigint, day date, currency text, active int, trial int, paying int, monthly_milliunits bigint,
    began int, returned int, churned int, trials_started int, trials_converted int, trials_lost int)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    everybody bigint[] := ARRAY(SELECT k.stream_id FROM perennial.subscription_key k);
BEGIN
    RETURN QUERY SELECT * FROM perennial.shares_of(everybody);
END $$;
CREATE OR REPLACE VIEW perennial.day_recomputed AS
SELECT a.bundle_id, s.environment::text AS environment, n.day, n.currency, sum(n.active) AS active, sum(n.trial) AS trial,
       sum(n.paying) AS paying, sum(n.monthly_milliunits) AS monthly_milliunits, sum(n.began) AS began,
       sum(n.returned) AS returned, sum(n.churned) AS churned, sum(n.trials_started) AS trials_started,
       sum(n.trials_converted) AS trials_converted, sum(n.trials_lost) AS trials_lost
FROM perennial.shares_recomputed() n
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
GROUP BY a.bundle_id, s.environment, n.day, n.currency;
