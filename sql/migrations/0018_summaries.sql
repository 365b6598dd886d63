-- The admin page: who is signed in, how many checks each hour brought, and each day's figures, kept up by reading the feed.

-- Only a hash of what the browser holds is kept; several servers share the rows.
CREATE TABLE ledger.admin_session (
    digest      bytea PRIMARY KEY,
    key_id      int NOT NULL REFERENCES ledger.api_key,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    CONSTRAINT admin_session_digest_is_sha256 CHECK (length(digest) = 32)
);

CREATE TABLE ledger.check_hour (
    app_id    int NOT NULL,
    hour      timestamptz NOT NULL,
    verified  bigint NOT NULL,
    rejected  bigint NOT NULL,
    failed    bigint NOT NULL,
    PRIMARY KEY (app_id, hour)
) WITH (fillfactor = 50);
COMMENT ON TABLE ledger.check_hour IS
    'Apple''s answers by hour: a process adds its own every few seconds, so the last of a process that was killed are missing';
COMMENT ON COLUMN ledger.check_hour.failed IS 'Checks that brought no usable answer';

-- A customer is searched by the beginning of the name.
CREATE INDEX customer_name_prefix ON ledger.customer (app_id, name text_pattern_ops);

-- What one subscription adds to the figures of one day: levels (active, trial, paying, monthly) as the change from the day
-- before, counts as they are. The currency '' stands for none. Days that are not over are among them.
CREATE TABLE ledger.summary_share (
    subscription_id     bigint NOT NULL REFERENCES ledger.subscription ON DELETE CASCADE,
    day                 date NOT NULL,
    currency            text NOT NULL,
    active              int NOT NULL,
    trial               int NOT NULL,
    paying              int NOT NULL,
    monthly_milliunits  bigint NOT NULL,
    began               int NOT NULL,
    returned            int NOT NULL,
    churned             int NOT NULL,
    trials_started      int NOT NULL,
    trials_converted    int NOT NULL,
    trials_lost         int NOT NULL,
    PRIMARY KEY (subscription_id, day, currency)
);

-- The sums of the shares. They are added to and taken from in the transaction that changes the shares.
CREATE TABLE ledger.summary_day (
    app_id              int NOT NULL,
    environment         ledger.environment NOT NULL,
    day                 date NOT NULL,
    currency            text NOT NULL,
    active              bigint NOT NULL,
    trial               bigint NOT NULL,
    paying              bigint NOT NULL,
    monthly_milliunits  numeric NOT NULL,
    began               bigint NOT NULL,
    returned            bigint NOT NULL,
    churned             bigint NOT NULL,
    trials_started      bigint NOT NULL,
    trials_converted    bigint NOT NULL,
    trials_lost         bigint NOT NULL,
    PRIMARY KEY (app_id, environment, day, currency)
) WITH (fillfactor = 50);

-- A subscription that is erased takes its share out of the sums.
CREATE FUNCTION ledger.take_share_out() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.summary_day d
    SET active = d.active - gone.active, trial = d.trial - gone.trial, paying = d.paying - gone.paying,
        monthly_milliunits = d.monthly_milliunits - gone.monthly_milliunits, began = d.began - gone.began,
        returned = d.returned - gone.returned, churned = d.churned - gone.churned,
        trials_started = d.trials_started - gone.trials_started,
        trials_converted = d.trials_converted - gone.trials_converted, trials_lost = d.trials_lost - gone.trials_lost
    FROM ledger.summary_share gone
    WHERE gone.subscription_id = OLD.subscription_id AND d.app_id = OLD.app_id AND d.environment = OLD.environment
      AND d.day = gone.day AND d.currency = gone.currency;
    RETURN OLD;
END $$;
CREATE TRIGGER subscription_leaves_the_sums BEFORE DELETE ON ledger.subscription
    FOR EACH ROW EXECUTE FUNCTION ledger.take_share_out();

-- How far the feed was read, and how far the round through all subscriptions is: the round finds what no event tells, such
-- as a corrected price.
CREATE TABLE ledger.summary_progress (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position       bigint NOT NULL DEFAULT 0,
    round_at       bigint NOT NULL DEFAULT 0,
    rounds         bigint NOT NULL DEFAULT 0,
    summarised_at  timestamptz
);
INSERT INTO ledger.summary_progress DEFAULT VALUES;
COMMENT ON COLUMN ledger.summary_progress.rounds IS 'Whole rounds so far; until the first is over the sums lack subscriptions';

-- How many months a period lasts, as before, but one expression, which the planner puts where it is used.
CREATE OR REPLACE FUNCTION perennial.months(period text, purchased_at timestamptz, expires_at timestamptz) RETURNS numeric
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE right(period, 1)
        WHEN 'Y' THEN 12.0 * substr(period, 2, length(period) - 2)::int
        WHEN 'M' THEN substr(period, 2, length(period) - 2)::numeric
        WHEN 'W' THEN 7.0 * substr(period, 2, length(period) - 2)::int * 12 / 365.25
        WHEN 'D' THEN substr(period, 2, length(period) - 2)::numeric * 12 / 365.25
        ELSE CASE
            WHEN expires_at - purchased_at >= interval '25 days'
                THEN round(extract(epoch FROM expires_at - purchased_at) / 86400 * 12 / 365.25)
            WHEN expires_at - purchased_at >= interval '6 days'
                THEN round(extract(epoch FROM expires_at - purchased_at) / 86400 / 7) * 7 * 12 / 365.25
            WHEN expires_at - purchased_at >= interval '1 day'
                THEN round(extract(epoch FROM expires_at - purchased_at) / 86400) * 12 / 365.25 END END
$$;

-- What the reports read, now for chosen subscriptions too (streams; null: everything), so that a summary costs what changed.
-- The functions of the schema perennial stay as they are; one SELECT each, so that the planner looks into them.
CREATE FUNCTION perennial.charges_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id, c.product_id, c.quantity,
           c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared, place.storefront,
           c.quantity * CASE basis.word WHEN 'said' THEN said.price_milliunits WHEN 'storefront' THEN there.price_milliunits
                                        WHEN 'default' THEN anywhere.price_milliunits END,
           CASE basis.word WHEN 'said' THEN said.currency WHEN 'storefront' THEN there.currency
                           WHEN 'default' THEN anywhere.currency END,
           basis.word, c.first_known_at, c.cancellation_known_at
    FROM perennial.charge_history c
    LEFT JOIN (
        SELECT DISTINCT ON (newest.kind, newest.charge_id) newest.*
        FROM (
            SELECT DISTINCT ON (w.said_id) w.said_id, w.said_at, w.price_milliunits, w.currency, h.kind, h.charge_id
            FROM perennial.price_said w
            JOIN perennial.charge_history h ON h.kind = w.kind AND h.stream_id = w.stream_id
                -- Apple's clock and ours may differ by a little.
                AND h.purchased_at <= w.said_at + interval '5 minutes'
            WHERE w.price_milliunits IS NOT NULL AND w.said_at <= known_at
              AND (streams IS NULL OR w.said_id IN (
                  SELECT x.said_id FROM perennial.price_said x WHERE x.kind = 'subscription' AND x.stream_id = ANY (streams)))
              AND NOT h.is_family_shared
              AND h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
            ORDER BY w.said_id, h.purchased_at DESC, h.kind, h.charge_id) newest
        ORDER BY newest.kind, newest.charge_id, newest.said_at DESC, newest.said_id DESC
    ) said ON said.kind = c.kind AND said.charge_id = c.charge_id
    LEFT JOIN (
        -- What is said of the storefront goes for a purchase of the day before, and until something else is said.
        SELECT w.kind, w.stream_id, w.storefront,
               CASE WHEN row_number() OVER stream = 1 THEN '-infinity' ELSE w.said_at - interval '1 day' END AS valid_from,
               COALESCE(lead(w.said_at) OVER stream - interval '1 day', 'infinity') AS valid_until
        FROM perennial.price_said w WHERE w.storefront IS NOT NULL AND w.said_at <= known_at
          AND (streams IS NULL OR (w.kind = 'subscription' AND w.stream_id = ANY (streams)))
        WINDOW stream AS (PARTITION BY w.kind, w.stream_id ORDER BY w.said_at, w.said_id)
    ) place ON place.kind = c.kind AND place.stream_id = c.stream_id
        AND place.valid_from <= c.purchased_at AND c.purchased_at < place.valid_until
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = place.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until
        AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until
        AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.is_family_shared OR c.offer IS NOT DISTINCT FROM 'trial' THEN NULL
                    WHEN said.price_milliunits IS NOT NULL THEN 'said'
                    WHEN c.offer IS NOT NULL THEN 'unknown'
                    WHEN there.price_milliunits IS NOT NULL THEN 'storefront'
                    WHEN anywhere.price_milliunits IS NOT NULL THEN 'default'
                    ELSE 'unknown' END AS word) basis
    WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
      AND (streams IS NULL OR (c.kind = 'subscription' AND c.stream_id = ANY (streams)))
$$;

CREATE FUNCTION perennial.paying_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE AS $$
    SELECT t.bundle_id, t.environment, t.subscription_id, p.charge_id, t.original_transaction_id, t.product_id,
           GREATEST(t.valid_from, p.purchased_at), LEAST(t.access_until, p.next_purchased_at),
           CASE WHEN t.access_until < t.valid_until THEN t.state ELSE t.next_state END,
           CASE WHEN t.access_until < t.valid_until THEN t.reason ELSE t.next_reason END,
           p.offer, p.monthly, CASE WHEN p.monthly IS NOT NULL THEN p.currency END, p.price_basis
    FROM (
        SELECT h.*, lead(h.state) OVER stream AS next_state, lead(h.reason) OVER stream AS next_reason
        FROM perennial.timeline h
        WHERE h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
          AND (streams IS NULL OR h.subscription_id = ANY (streams))
        WINDOW stream AS (PARTITION BY h.subscription_id ORDER BY h.valid_from)
    ) t
    JOIN (
        SELECT c.*, lead(c.purchased_at) OVER (
                   PARTITION BY c.stream_id, c.product_id ORDER BY c.purchased_at, c.expires_at, c.charge_id) AS next_purchased_at,
               round(c.amount_milliunits / NULLIF(perennial.months(
                   CASE WHEN c.offer IS NULL THEN d.period END, c.purchased_at, c.expires_at), 0))::bigint AS monthly
        FROM perennial.charges_of(known_at, streams) c
        LEFT JOIN perennial.product_now d ON d.bundle_id = c.bundle_id AND d.product_id = c.product_id
        WHERE c.kind = 'subscription' AND COALESCE(c.cancelled_at > c.purchased_at, true)
    ) p ON p.stream_id = t.subscription_id AND p.product_id = t.product_id
        AND p.purchased_at < t.access_until AND COALESCE(p.next_purchased_at > t.valid_from, true)
    WHERE t.access_until IS NOT NULL AND p.price_basis IS NOT NULL
$$;

CREATE FUNCTION perennial.paying_days_of(known_at timestamptz, time_zone text, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, next_first_day date)
LANGUAGE sql STABLE AS $$
    SELECT d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, d.product_id, d.first_day, d.end_day,
           d.ended_state, d.ended_reason, d.offer, d.monthly_milliunits, d.currency, d.price_basis,
           lag(d.product_id) OVER stream, lag(d.end_day) OVER stream, lag(d.monthly_milliunits) OVER stream,
           lag(d.currency) OVER stream, lag(d.price_basis) OVER stream, lead(d.first_day) OVER stream
    FROM (
        SELECT p.*, (p.paying_from AT TIME ZONE time_zone)::date AS first_day,
               (p.paying_until AT TIME ZONE time_zone)::date AS end_day
        FROM perennial.paying_of(known_at, streams) p) d
    WHERE d.first_day < d.end_day
    WINDOW stream AS (PARTITION BY d.stream_id ORDER BY d.first_day)
$$;

CREATE FUNCTION perennial.mrr_movement_of(known_at timestamptz, time_zone text, streams bigint[])
RETURNS TABLE (
    day date, bundle_id text, environment text, stream_id bigint, original_transaction_id text, kind text, product_id text,
    currency text, monthly_milliunits bigint, price_basis text, ended_state text, ended_reason text)
LANGUAGE sql STABLE AS $$
    SELECT m.day, d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, m.kind, m.product_id, m.currency,
           m.amount, m.price_basis, m.ended_state, m.ended_reason
    FROM perennial.paying_days_of(known_at, time_zone, streams) d
    CROSS JOIN LATERAL (
        SELECT d.first_day AS day, CASE WHEN d.previous_end_day IS NULL THEN 'new' ELSE 'reactivation' END AS kind,
               d.product_id, d.currency, d.monthly_milliunits AS amount, d.price_basis, NULL AS ended_state,
               NULL AS ended_reason
        WHERE COALESCE(d.previous_end_day < d.first_day, true)
        UNION ALL
        SELECT d.first_day, CASE WHEN d.monthly_milliunits > d.previous_monthly_milliunits THEN 'expansion'
                                 ELSE 'contraction' END,
               d.product_id, d.currency, d.monthly_milliunits - d.previous_monthly_milliunits, d.price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency = d.currency
          AND d.previous_monthly_milliunits <> d.monthly_milliunits
        UNION ALL
        SELECT d.first_day, 'contraction', d.previous_product_id, d.previous_currency, -d.previous_monthly_milliunits,
               d.previous_price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency IS DISTINCT FROM d.currency
          AND d.previous_monthly_milliunits IS NOT NULL
        UNION ALL
        SELECT d.first_day, 'expansion', d.product_id, d.currency, d.monthly_milliunits, d.price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency IS DISTINCT FROM d.currency
          AND d.monthly_milliunits IS NOT NULL
        UNION ALL
        SELECT d.end_day, 'churn', d.product_id, d.currency, -d.monthly_milliunits, d.price_basis, d.ended_state,
               d.ended_reason
        WHERE COALESCE(d.next_first_day > d.end_day, true)) m
$$;

CREATE FUNCTION perennial.trials_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           o.outcome,
           CASE o.outcome WHEN 'converted' THEN r.paid_at
                          WHEN 'lost' THEN CASE WHEN r.paid_at IS NULL THEN t.valid_from ELSE r.ends_at END END
    FROM (
        SELECT p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, min(p.product_id) AS product_id,
               min(p.purchased_at) AS started_at, max(LEAST(p.expires_at, p.cancelled_at)) AS ends_at,
               min(p.paid_at) AS paid_at
        FROM (
            SELECT b.*, count(*) FILTER (WHERE b.begins) OVER (
                       PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id) AS run,
                   min(b.purchased_at) FILTER (WHERE b.offer IS DISTINCT FROM 'trial') OVER (
                       PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id
                       ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS paid_at
            FROM (
                SELECT c.*, lag(c.offer) OVER (
                           PARTITION BY c.stream_id ORDER BY c.purchased_at, c.charge_id)
                           IS DISTINCT FROM c.offer AS begins
                FROM perennial.charge_history c
                WHERE c.kind = 'subscription' AND NOT c.is_family_shared AND c.purchased_at <= LEAST(known_at, now())
                  AND COALESCE(c.cancelled_at > c.purchased_at, true)
                  AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
                  AND (streams IS NULL OR c.stream_id = ANY (streams))) b) p
        WHERE p.offer = 'trial'
        GROUP BY p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, p.run) r
    LEFT JOIN perennial.timeline t
        ON t.subscription_id = r.stream_id
        AND t.valid_from <= LEAST(known_at, now()) AND LEAST(known_at, now()) < t.valid_until
        AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.paid_at <= r.ends_at + interval '65 days' THEN 'converted'
                    WHEN r.paid_at IS NOT NULL THEN 'lost'
                    WHEN r.ends_at > LEAST(known_at, now()) THEN 'running'
                    WHEN t.state IN ('expired', 'revoked')
                        AND COALESCE(t.access_until <= LEAST(known_at, now()), true) THEN 'lost'
                    ELSE 'pending' END AS outcome) o
$$;

CREATE OR REPLACE FUNCTION perennial.charges_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, kind text, stream_id bigint, charge_id bigint, original_transaction_id text,
    product_id text, quantity int, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz,
    is_upgraded boolean, offer text, is_family_shared boolean, storefront text, amount_milliunits bigint, currency text,
    price_basis text, first_known_at timestamptz, cancellation_known_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT * FROM perennial.charges_of(known_at, NULL)
$$;

CREATE OR REPLACE FUNCTION perennial.paying_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE AS $$
    SELECT * FROM perennial.paying_of(known_at, NULL)
$$;

CREATE OR REPLACE FUNCTION perennial.paying_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, next_first_day date)
LANGUAGE sql STABLE AS $$
    SELECT * FROM perennial.paying_days_of(known_at, time_zone, NULL)
$$;

CREATE OR REPLACE FUNCTION perennial.mrr_movement_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, stream_id bigint, original_transaction_id text, kind text, product_id text,
    currency text, monthly_milliunits bigint, price_basis text, ended_state text, ended_reason text)
LANGUAGE sql STABLE AS $$
    SELECT * FROM perennial.mrr_movement_of(known_at, time_zone, NULL)
$$;

CREATE OR REPLACE FUNCTION perennial.trials_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT * FROM perennial.trials_of(known_at, NULL)
$$;

-- What each subscription's share is by the full history: who has access, who pays, and how trials went, by UTC days;
-- streams: of these alone, null: of all.
CREATE FUNCTION perennial.shares_of(streams bigint[])
RETURNS TABLE (
    subscription_id bigint, day date, currency text, active int, trial int, paying int, monthly_milliunits bigint,
    began int, returned int, churned int, trials_started int, trials_converted int, trials_lost int)
LANGUAGE sql STABLE AS $$
    SELECT moved.subscription_id, moved.day, moved.currency, sum(moved.active)::int AS active, sum(moved.trial)::int AS trial,
           sum(moved.paying)::int AS paying, sum(moved.monthly)::bigint AS monthly_milliunits, sum(moved.began)::int AS began,
           sum(moved.returned)::int AS returned, sum(moved.churned)::int AS churned,
           sum(moved.trials_started)::int AS trials_started, sum(moved.trials_converted)::int AS trials_converted,
           sum(moved.trials_lost)::int AS trials_lost
    FROM (
        SELECT t.subscription_id, at.day, '' AS currency, at.change AS active,
               CASE WHEN 'trial' = ANY (t.flags) AND NOT 'family_shared' = ANY (t.flags) THEN at.change ELSE 0 END AS trial,
               0 AS paying, 0::bigint AS monthly, 0 AS began, 0 AS returned, 0 AS churned, 0 AS trials_started,
               0 AS trials_converted, 0 AS trials_lost
        FROM perennial.timeline t
        CROSS JOIN LATERAL (
            SELECT (t.valid_from AT TIME ZONE 'UTC')::date AS first_day, (t.access_until AT TIME ZONE 'UTC')::date AS end_day) d
        CROSS JOIN LATERAL (VALUES (d.first_day, 1), (d.end_day, -1)) AS at (day, change)
        WHERE t.access_until IS NOT NULL AND t.known_until IS NULL AND d.first_day < d.end_day
          AND (streams IS NULL OR t.subscription_id = ANY (streams))
        UNION ALL
        SELECT m.stream_id, m.day, COALESCE(m.currency, ''), 0, 0,
               CASE m.kind WHEN 'new' THEN 1 WHEN 'reactivation' THEN 1 WHEN 'churn' THEN -1 ELSE 0 END,
               COALESCE(m.monthly_milliunits, 0), (m.kind = 'new')::int, (m.kind = 'reactivation')::int,
               (m.kind = 'churn')::int, 0, 0, 0
        FROM perennial.mrr_movement_of('infinity', 'UTC', streams) m
        UNION ALL
        SELECT t.stream_id, (happened.at AT TIME ZONE 'UTC')::date, '', 0, 0, 0, 0, 0, 0, 0, (happened.kind = 'started')::int,
               (happened.kind = 'converted')::int, (happened.kind = 'lost')::int
        FROM perennial.trials_of('infinity', streams) t
        CROSS JOIN LATERAL (VALUES ('started', t.started_at), (t.outcome, t.decided_at)) AS happened (kind, at)
        WHERE happened.kind IN ('started', 'converted', 'lost')) moved
    GROUP BY moved.subscription_id, moved.day, moved.currency
    HAVING num_nonnulls(NULLIF(sum(moved.active), 0), NULLIF(sum(moved.trial), 0), NULLIF(sum(moved.paying), 0),
                        NULLIF(sum(moved.monthly), 0), NULLIF(sum(moved.began), 0), NULLIF(sum(moved.returned), 0),
                        NULLIF(sum(moved.churned), 0), NULLIF(sum(moved.trials_started), 0),
                        NULLIF(sum(moved.trials_converted), 0), NULLIF(sum(moved.trials_lost), 0)) > 0
$$;

-- The figures of each UTC day as the summaries have them, and as the full history gives them.
CREATE VIEW perennial.day_summary AS
SELECT a.bundle_id, d.environment::text AS environment, d.day, d.currency, d.active, d.trial, d.paying,
       d.monthly_milliunits, d.began, d.returned, d.churned, d.trials_started, d.trials_converted, d.trials_lost
FROM ledger.summary_day d JOIN ledger.app a USING (app_id);

CREATE VIEW perennial.day_recomputed AS
SELECT a.bundle_id, s.environment::text AS environment, n.day, n.currency, sum(n.active) AS active, sum(n.trial) AS trial,
       sum(n.paying) AS paying, sum(n.monthly_milliunits) AS monthly_milliunits, sum(n.began) AS began,
       sum(n.returned) AS returned, sum(n.churned) AS churned, sum(n.trials_started) AS trials_started,
       sum(n.trials_converted) AS trials_converted, sum(n.trials_lost) AS trials_lost
FROM perennial.shares_of(NULL) n
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
GROUP BY a.bundle_id, s.environment, n.day, n.currency;

-- How far the summaries are behind the feed.
CREATE VIEW perennial.summary_now AS
SELECT p.position, (SELECT COALESCE(max(f.position), 0) FROM ledger.event_feed f) - p.position AS events_behind,
       p.rounds > 0 AS is_complete, p.summarised_at
FROM ledger.summary_progress p;
