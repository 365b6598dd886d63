-- The functions that reports read: days of paying, movements of revenue, trials, what moved past figures, and sums by day.

CREATE FUNCTION ledger.paying_days_of(
    known_at timestamptz, time_zone text, streams bigint[], clock timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, is_first_full_price boolean, next_first_day date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, d.product_id, d.first_day, d.end_day,
           d.ended_state, d.ended_reason, d.offer, d.monthly_milliunits, d.currency, d.price_basis,
           lag(d.product_id) OVER stream, COALESCE(lag(d.end_day) OVER stream, NULLIF(d.began_day, d.first_day)),
           lag(d.monthly_milliunits) OVER stream, lag(d.currency) OVER stream, lag(d.price_basis) OVER stream,
           d.offer IS NULL AND d.first_day = d.full_day,
           lead(d.first_day) OVER stream
    FROM (
        -- Stretches without a day's end add no day. They say how a day ended that began with paying, who paid before, and who
        -- paid without an offer before.
        SELECT s.bundle_id, s.environment, s.stream_id, s.original_transaction_id, s.product_id, s.first_day, s.end_day,
               last_value(s.ended_state) OVER that_day AS ended_state,
               last_value(s.ended_reason) OVER that_day AS ended_reason, s.offer, s.monthly_milliunits, s.currency,
               s.price_basis, min(s.first_day) OVER (PARTITION BY s.stream_id) AS began_day,
               min(s.first_day) FILTER (WHERE s.offer IS NULL) OVER (PARTITION BY s.stream_id) AS full_day
        FROM (
            SELECT p.*, perennial.counted_day(p.paying_from, time_zone, clock) AS first_day,
                   perennial.counted_day(p.paying_until, time_zone, clock) AS end_day
            FROM ledger.paying_combined(known_at, streams) p) s
        WINDOW that_day AS (
            PARTITION BY s.stream_id, s.end_day ORDER BY s.paying_from
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) d
    WHERE d.first_day < d.end_day
    -- They do not overlap, so this is the order of their first days too, and needs no other sort.
    WINDOW stream AS (PARTITION BY d.stream_id ORDER BY d.end_day)
$$;
COMMENT ON FUNCTION ledger.paying_days_of IS
    'Stretches of paying in whole days of a time zone: a subscription pays on a day if it does at the day''s end, '
    'from first_day until before end_day; the day that runs at clock ends there. ended_state and ended_reason are what '
    'came after the last stretch of that day. Each row has the stretch before and after it, so that one day compares '
    'with the next; previous_end_day and is_first_full_price alone also count a charge that saw no day''s end';

CREATE FUNCTION perennial.paying_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, is_first_full_price boolean, next_first_day date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM ledger.paying_days_of(known_at, time_zone, NULL, 'infinity')
$$;
COMMENT ON FUNCTION perennial.paying_days_as_known IS 'ledger.paying_days_of for every subscription';

CREATE FUNCTION ledger.mrr_movement_of(
    known_at timestamptz, time_zone text, streams bigint[], clock timestamptz)
RETURNS TABLE (
    day date, bundle_id text, environment text, stream_id bigint, original_transaction_id text, kind text,
    product_id text, currency text, monthly_milliunits bigint, price_basis text, ended_state text, ended_reason text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT m.day, d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, m.kind, m.product_id, m.currency,
           m.amount, m.price_basis, m.ended_state, m.ended_reason
    FROM ledger.paying_days_of(known_at, time_zone, streams, clock) d
    CROSS JOIN LATERAL (
        SELECT d.first_day AS day, CASE WHEN d.previous_end_day IS NULL THEN 'new' ELSE 'reactivation' END AS kind,
               d.product_id, d.currency, d.monthly_milliunits AS amount, d.price_basis, NULL AS ended_state,
               NULL AS ended_reason
        WHERE COALESCE(d.previous_end_day < d.first_day, true)
        UNION ALL
        SELECT d.first_day, side.kind, side.product_id, d.previous_currency,
               side.sign * d.previous_monthly_milliunits, d.previous_price_basis, NULL, NULL
        FROM (VALUES ('product_left', d.previous_product_id, -1), ('product_joined', d.product_id, 1))
            AS side (kind, product_id, sign)
        WHERE d.previous_end_day = d.first_day AND d.previous_product_id <> d.product_id
        UNION ALL
        SELECT d.first_day, CASE WHEN d.is_first_full_price THEN 'first_full_price'
                                 WHEN d.monthly_milliunits > d.previous_monthly_milliunits THEN 'expansion'
                                 ELSE 'contraction' END,
               d.product_id, d.currency, d.monthly_milliunits - d.previous_monthly_milliunits, d.price_basis, NULL, NULL
        WHERE d.previous_end_day = d.first_day AND d.previous_currency = d.currency
          AND d.previous_monthly_milliunits <> d.monthly_milliunits
        UNION ALL
        SELECT d.first_day, CASE WHEN d.is_first_full_price THEN 'first_full_price' ELSE 'currency_change' END,
               d.product_id, side.currency, side.amount, side.price_basis, NULL, NULL
        FROM (VALUES (d.previous_currency, -d.previous_monthly_milliunits, d.previous_price_basis),
                     (d.currency, d.monthly_milliunits, d.price_basis)) AS side (currency, amount, price_basis)
        WHERE d.previous_end_day = d.first_day AND d.previous_currency IS DISTINCT FROM d.currency
          AND side.amount IS NOT NULL
        UNION ALL
        SELECT d.end_day, 'churn', d.product_id, d.currency, -d.monthly_milliunits, d.price_basis, d.ended_state,
               d.ended_reason
        WHERE COALESCE(d.next_first_day > d.end_day, true)) m
$$;
COMMENT ON FUNCTION ledger.mrr_movement_of IS
    'How monthly recurring revenue moved from the end of one day to the end of the next, per subscription, product and '
    'currency. new: never paid before, not even on an earlier day at whose end it no longer did; reactivation; expansion '
    'and contraction: pays more or less; churn. '
    'first_full_price: goes on without an offer, and until then paid only with offers. currency_change: goes on in '
    'another currency, or at a price that became known or unknown, out of the one and into the other. product_left and '
    'product_joined: goes on with another product, which takes its former price over, before any other movement';

CREATE FUNCTION perennial.mrr_movement_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, stream_id bigint, original_transaction_id text, kind text,
    product_id text, currency text, monthly_milliunits bigint, price_basis text, ended_state text, ended_reason text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM ledger.mrr_movement_of(known_at, time_zone, NULL, LEAST(known_at, now()))
$$;
COMMENT ON FUNCTION perennial.mrr_movement_as_known IS
    'ledger.mrr_movement_of for every subscription; the day that runs ends at known_at or now';

CREATE FUNCTION perennial.mrr_movement_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, kind text, product_id text, currency text, price_basis text,
    ended_state text, ended_reason text, movements bigint, monthly numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT m.day, m.bundle_id, m.environment, m.kind, m.product_id, m.currency, m.price_basis, m.ended_state,
           m.ended_reason, count(*), sum(m.monthly_milliunits)
    FROM perennial.mrr_movement_as_known(known_at, time_zone) m
    GROUP BY m.day, m.bundle_id, m.environment, m.kind, m.product_id, m.currency, m.price_basis, m.ended_state,
             m.ended_reason
$$;
COMMENT ON FUNCTION perennial.mrr_movement_days_as_known IS
    'The movements of each day and product, counted and added up; reports by week, month or year add these up';

CREATE FUNCTION perennial.revenue_days_as_known(known_at timestamptz, time_zone text)
RETURNS TABLE (
    day date, bundle_id text, environment text, charge_kind text, kind text, product_id text, currency text,
    price_basis text, commission_percent int, commission_reason text, movements bigint, amount_milliunits numeric,
    proceeds_milliunits numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (r.occurred_at AT TIME ZONE time_zone)::date, r.bundle_id, r.environment, r.charge_kind, r.kind,
           r.product_id, r.currency, r.price_basis, r.commission_percent, r.commission_reason, count(*),
           sum(r.amount_milliunits), sum(r.proceeds_milliunits)
    FROM perennial.revenue_as_known(known_at) r
    GROUP BY 1, r.bundle_id, r.environment, r.charge_kind, r.kind, r.product_id, r.currency, r.price_basis,
             r.commission_percent, r.commission_reason
$$;
COMMENT ON FUNCTION perennial.revenue_days_as_known IS
    'The charges, refunds and prorations of each day, counted and added up; reports by week, month or year add '
    'these up';

CREATE FUNCTION ledger.trials_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz, refunded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           o.outcome,
           CASE o.outcome WHEN 'converted' THEN r.paid_at
                          WHEN 'lost' THEN COALESCE(r.lost_at, r.ends_at + interval '65 days') END,
           CASE WHEN o.outcome = 'converted' THEN r.refunded_at END
    FROM (
        SELECT t.bundle_id, t.environment, t.stream_id, t.original_transaction_id, t.product_id, t.started_at,
               t.ends_at, t.paid_at, t.refunded_at,
               -- Where what followed the trial has moved away, nothing did.
               COALESCE(t.lost_at, min(CASE WHEN e.detail ? 'moved_to' THEN t.ends_at ELSE e.occurred_at END)) AS lost_at
        FROM ledger.trial_runs_combined(known_at, streams) t
        LEFT JOIN (
            SELECT e.stream_id, e.kind, e.occurred_at, e.recorded_at, e.detail, true AS is_own
            FROM perennial.subscription_event e
            WHERE streams IS NULL OR e.stream_id = ANY (streams)
            UNION ALL
            SELECT m.stream_id, e.kind, e.occurred_at, e.recorded_at, e.detail, false
            FROM (
                SELECT DISTINCT m.stream_id, m.former_stream_id FROM perennial.moved_period m
                WHERE m.known_from <= known_at AND COALESCE(m.known_until > known_at, true)
                  AND (streams IS NULL OR m.stream_id = ANY (streams))) m
            JOIN perennial.subscription_event e ON e.stream_id = m.former_stream_id) e
            ON e.stream_id = t.stream_id AND e.occurred_at >= t.started_at AND e.recorded_at <= known_at
            AND (e.kind IN ('trial.expired', 'refund.granted') AND NOT e.detail ? 'moved_to'
                 OR e.kind = 'billing.grace_expired' AND e.detail ? 'reason' OR e.is_own AND e.detail ? 'moved_to')
        GROUP BY t.bundle_id, t.environment, t.stream_id, t.original_transaction_id, t.product_id, t.started_at,
                 t.ends_at, t.paid_at, t.refunded_at, t.lost_at) r
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.paid_at <= LEAST(known_at, now()) THEN 'converted'
                    WHEN r.lost_at IS NOT NULL THEN 'lost'
                    WHEN r.ends_at > LEAST(known_at, now()) THEN 'running'
                    WHEN r.ends_at + interval '65 days' <= LEAST(known_at, now()) THEN 'lost'
                    ELSE 'pending' END AS outcome) o
    WHERE r.started_at <= LEAST(known_at, now())
$$;
COMMENT ON FUNCTION ledger.trials_of IS
    'Trials and how they went, by the events that were known at known_at, and by the periods where the trial had ended '
    'at first sight; what Apple charges ahead has not happened '
    'until its date. converted: by trial.converted, or when a paid period replaced the trial at once; lost: by its '
    'end or refund, and 65 days after its end in any case (Apple tries to charge for 60); running; pending: over, '
    'and Apple was neither asked nor has given up. refunded_at: when Apple refunded the first charge of a converted one';

CREATE FUNCTION perennial.trials_as_known(known_at timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz, refunded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM ledger.trials_of(known_at, NULL)
$$;
COMMENT ON FUNCTION perennial.trials_as_known IS 'ledger.trials_of for every subscription';

CREATE FUNCTION ledger.month_difference(began_at timestamptz, before timestamptz) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (12 * (date_part('year', (before AT TIME ZONE 'UTC') - interval '1 day')
                  - date_part('year', began_at AT TIME ZONE 'UTC'))
            + date_part('month', (before AT TIME ZONE 'UTC') - interval '1 day')
            - date_part('month', began_at AT TIME ZONE 'UTC'))::int
$$;
COMMENT ON FUNCTION ledger.month_difference IS
    'How many calendar months, in UTC, lie between one instant and the day before another';

-- The function is one expression, which the planner puts where it is used.
CREATE FUNCTION perennial.anniversaries(began_at timestamptz, before timestamptz) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT GREATEST(0, ledger.month_difference(began_at, before) - (
        (began_at AT TIME ZONE 'UTC') + ledger.month_difference(began_at, before) * interval '1 month'
            >= (before AT TIME ZONE 'UTC') - interval '1 day')::int)
$$;
COMMENT ON FUNCTION perennial.anniversaries IS
    'How many monthly anniversaries of an instant came before another one, each with a day for late renewals and '
    'the hour of daylight saving';

CREATE FUNCTION ledger.changed_between(known_before timestamptz, known_after timestamptz)
RETURNS TABLE (kind text, stream_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH reported AS (
        SELECT 'subscription' AS kind, t.subscription_id AS stream_id FROM perennial.timeline t
        WHERE (t.known_from > known_before AND t.known_from <= known_after)
           OR (t.known_until > known_before AND t.known_until <= known_after)
        UNION ALL
        SELECT c.kind, c.stream_id FROM perennial.charge_history c
        WHERE (c.known_from > known_before AND c.known_from <= known_after)
           OR (c.known_until > known_before AND c.known_until <= known_after)
        UNION ALL
        SELECT c.kind, c.stream_id
        FROM perennial.price_history p
        JOIN perennial.charge_history c ON c.bundle_id = p.bundle_id AND c.product_id = p.product_id
            AND c.purchased_at >= p.valid_from AND c.purchased_at < p.valid_until
        WHERE (p.known_from > known_before AND p.known_from <= known_after)
           OR (p.known_until > known_before AND p.known_until <= known_after)
    )
    SELECT t.kind, t.stream_id FROM reported t
    UNION
    -- A reported price may now be about another thing in the same receipt.
    SELECT other.kind, other.stream_id
    FROM perennial.stated_price w JOIN perennial.stated_price other USING (stated_id)
    WHERE (w.stated_at > known_before AND w.stated_at <= known_after)
       OR (w.price_milliunits IS NOT NULL AND (w.kind, w.stream_id) IN (SELECT t.kind, t.stream_id FROM reported t));
END
$$;
COMMENT ON FUNCTION ledger.changed_between IS
    'The subscriptions and one-time purchases about which something became known after known_before and not after '
    'known_after';

CREATE FUNCTION perennial.restated_as_known(known_before timestamptz, known_after timestamptz, time_zone text)
RETURNS TABLE (
    figure text, sign int, bundle_id text, environment text, stream_kind text, stream_id bigint,
    original_transaction_id text, product_id text, currency text, first_day date, end_day date, amount bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    knowing record;
    streams bigint[];
    bought bigint[];
BEGIN
    SELECT COALESCE(array_agg(t.stream_id) FILTER (WHERE t.kind = 'subscription'), '{}'),
           COALESCE(array_agg(t.stream_id) FILTER (WHERE t.kind = 'purchase'), '{}')
    INTO streams, bought FROM ledger.changed_between(known_before, known_after) t;
    FOR knowing IN SELECT * FROM (VALUES (known_before, -1), (known_after, 1)) AS k (at, sign) LOOP
        RETURN QUERY
        SELECT 'active_subscriptions', knowing.sign, t.bundle_id, t.environment, 'subscription', t.subscription_id,
               t.original_transaction_id, t.product_id, NULL::text, (t.valid_from AT TIME ZONE time_zone)::date,
               (t.access_until AT TIME ZONE time_zone)::date, NULL::bigint
        FROM perennial.timeline t
        WHERE t.subscription_id = ANY (streams) AND t.access_until IS NOT NULL
          AND t.known_from <= knowing.at AND COALESCE(t.known_until > knowing.at, true);
        RETURN QUERY
        SELECT 'mrr', knowing.sign, d.bundle_id, d.environment, 'subscription', d.stream_id, d.original_transaction_id,
               d.product_id, d.currency, d.first_day, d.end_day, d.monthly_milliunits
        FROM ledger.paying_days_of(knowing.at, time_zone, streams, 'infinity') d;
        RETURN QUERY
        SELECT 'revenue', knowing.sign, r.bundle_id, r.environment, r.charge_kind, r.stream_id,
               r.original_transaction_id, r.product_id, r.currency, (r.occurred_at AT TIME ZONE time_zone)::date,
               (r.occurred_at AT TIME ZONE time_zone)::date + 1, r.amount_milliunits
        FROM (
            SELECT * FROM ledger.revenue_of(knowing.at, streams)
            UNION ALL
            SELECT * FROM ledger.revenue_of(knowing.at, NULL) r
            WHERE r.charge_kind = 'purchase' AND r.stream_id = ANY (bought) AND cardinality(bought) > 0) r;
    END LOOP;
END
$$;
COMMENT ON FUNCTION perennial.restated_as_known IS
    'What active subscriptions, recurring revenue and revenue rest on, as known at two instants: sign -1 is what '
    'was known before, sign 1 what was known after. Only of what changed in between; the rest would cancel out';

-- Each UTC day's figures: what each subscription adds to them, the sums, and how both compare with the full history.
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
COMMENT ON TABLE ledger.summary_share IS
    'What one subscription adds to the figures of one UTC day. Days that are not over are included. '
    'perennial.day_summary has the same columns';
COMMENT ON COLUMN ledger.summary_share.currency IS 'The currency of monthly_milliunits; empty: none';

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
COMMENT ON TABLE ledger.summary_day IS 'The sums of the shares. The transaction that changes a share changes its sum';

CREATE FUNCTION ledger.subtract_share() RETURNS trigger
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
COMMENT ON FUNCTION ledger.subtract_share IS 'Subtracts the shares of an erased subscription from the sums';

CREATE TRIGGER subscription_leaves_the_sums BEFORE DELETE ON ledger.subscription
    FOR EACH ROW EXECUTE FUNCTION ledger.subtract_share();

CREATE FUNCTION ledger.shares_of(streams bigint[])
RETURNS TABLE (
    subscription_id bigint, day date, currency text, active int, trial int, paying int, monthly_milliunits bigint,
    began int, returned int, churned int, trials_started int, trials_converted int, trials_lost int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moved.subscription_id, moved.day, moved.currency, sum(moved.active)::int AS active,
           sum(moved.trial)::int AS trial, sum(moved.paying)::int AS paying,
           sum(moved.monthly)::bigint AS monthly_milliunits, sum(moved.began)::int AS began,
           sum(moved.returned)::int AS returned, sum(moved.churned)::int AS churned,
           sum(moved.trials_started)::int AS trials_started, sum(moved.trials_converted)::int AS trials_converted,
           sum(moved.trials_lost)::int AS trials_lost
    FROM (
        SELECT t.subscription_id, at.day, '' AS currency, at.change AS active,
               CASE WHEN 'trial' = ANY (t.flags) AND NOT t.flags && '{family_shared,assigned}' THEN at.change
                    ELSE 0 END AS trial,
               0 AS paying, 0::bigint AS monthly, 0 AS began, 0 AS returned, 0 AS churned, 0 AS trials_started,
               0 AS trials_converted, 0 AS trials_lost
        FROM perennial.timeline t
        CROSS JOIN LATERAL (
            SELECT (t.valid_from AT TIME ZONE 'UTC')::date AS first_day,
                   (t.access_until AT TIME ZONE 'UTC')::date AS end_day) d
        CROSS JOIN LATERAL (VALUES (d.first_day, 1), (d.end_day, -1)) AS at (day, change)
        WHERE t.access_until IS NOT NULL AND t.known_until IS NULL AND d.first_day < d.end_day
          AND (streams IS NULL OR t.subscription_id = ANY (streams))
        UNION ALL
        SELECT m.stream_id, m.day, COALESCE(m.currency, ''), 0, 0,
               CASE m.kind WHEN 'new' THEN 1 WHEN 'reactivation' THEN 1 WHEN 'churn' THEN -1 ELSE 0 END,
               COALESCE(m.monthly_milliunits, 0), (m.kind = 'new')::int, (m.kind = 'reactivation')::int,
               (m.kind = 'churn')::int, 0, 0, 0
        FROM ledger.mrr_movement_of('infinity', 'UTC', streams, 'infinity') m
        UNION ALL
        SELECT t.stream_id, (happened.at AT TIME ZONE 'UTC')::date, '', 0, 0, 0, 0, 0, 0, 0,
               (happened.kind = 'started')::int, (happened.kind = 'converted')::int, (happened.kind = 'lost')::int
        FROM ledger.trials_of('infinity', streams) t
        CROSS JOIN LATERAL (VALUES ('started', t.started_at), (t.outcome, t.decided_at)) AS happened (kind, at)
        WHERE happened.kind IN ('started', 'converted', 'lost')) moved
    GROUP BY moved.subscription_id, moved.day, moved.currency
    HAVING num_nonnulls(NULLIF(sum(moved.active), 0), NULLIF(sum(moved.trial), 0), NULLIF(sum(moved.paying), 0),
                        NULLIF(sum(moved.monthly), 0), NULLIF(sum(moved.began), 0), NULLIF(sum(moved.returned), 0),
                        NULLIF(sum(moved.churned), 0), NULLIF(sum(moved.trials_started), 0),
                        NULLIF(sum(moved.trials_converted), 0), NULLIF(sum(moved.trials_lost), 0)) > 0
$$;
COMMENT ON FUNCTION ledger.shares_of IS
    'What each subscription adds to each UTC day by the full history: access, paying and trials. Levels (active, '
    'trial, paying, monthly_milliunits) are the change from the day before, the rest are counts';

CREATE FUNCTION ledger.slices(size int DEFAULT 10000) RETURNS SETOF bigint[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT array_agg(n.stream_id)
    FROM (SELECT k.stream_id, row_number() OVER (ORDER BY k.stream_id) AS place FROM perennial.subscription_key k) n
    GROUP BY (n.place - 1) / size
$$;
COMMENT ON FUNCTION ledger.slices IS 'All subscriptions in slices of a size that fits into memory';

-- Naming the subscriptions makes a recomputation read every history and no summary row.
CREATE FUNCTION ledger.shares_recomputed()
RETURNS TABLE (
    subscription_id bigint, day date, currency text, active int, trial int, paying int, monthly_milliunits bigint,
    began int, returned int, churned int, trials_started int, trials_converted int, trials_lost int)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    slice bigint[];
BEGIN
    FOR slice IN SELECT * FROM ledger.slices() LOOP
        RETURN QUERY SELECT * FROM ledger.shares_of(slice);
    END LOOP;
END $$;
COMMENT ON FUNCTION ledger.shares_recomputed IS 'ledger.shares_of for every subscription, from the history alone';

CREATE VIEW perennial.day_summary AS
SELECT a.bundle_id, d.environment::text AS environment, d.day, d.currency, d.active, d.trial, d.paying,
       d.monthly_milliunits, d.began, d.returned, d.churned, d.trials_started, d.trials_converted, d.trials_lost
FROM ledger.summary_day d JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.day_summary IS 'The figures of each UTC day as the summaries have them';

CREATE VIEW perennial.day_recomputed AS
SELECT a.bundle_id, s.environment::text AS environment, n.day, n.currency, sum(n.active) AS active,
       sum(n.trial) AS trial, sum(n.paying) AS paying, sum(n.monthly_milliunits) AS monthly_milliunits,
       sum(n.began) AS began, sum(n.returned) AS returned, sum(n.churned) AS churned,
       sum(n.trials_started) AS trials_started, sum(n.trials_converted) AS trials_converted,
       sum(n.trials_lost) AS trials_lost
FROM ledger.shares_recomputed() n
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
GROUP BY a.bundle_id, s.environment, n.day, n.currency;
COMMENT ON VIEW perennial.day_recomputed IS 'The figures of each UTC day as the full history gives them';

CREATE FUNCTION ledger.rows_differing_of(streams bigint[])
RETURNS TABLE (
    stream_id bigint, at timestamptz, bundle_id text, environment text, currency text, figure text, difference bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (r.reported).stream_id, (r.reported).occurred_at, (r.reported).bundle_id, (r.reported).environment,
           COALESCE((r.reported).currency, ''), 'revenue_rows', sum(r.sign)
    FROM (
        SELECT t AS reported, 1 AS sign FROM perennial.summary_revenue t WHERE t.stream_id = ANY (streams)
        UNION ALL
        SELECT ROW(h.*)::perennial.summary_revenue, -1 FROM ledger.revenue_of('infinity', streams) h) r
    GROUP BY r.reported HAVING sum(r.sign) <> 0
    UNION ALL
    SELECT (r.reported).stream_id, (r.reported).paying_from, (r.reported).bundle_id, (r.reported).environment,
           COALESCE((r.reported).currency, ''), 'paying_rows', sum(r.sign)
    FROM (
        SELECT t AS reported, 1 AS sign FROM perennial.summary_paying t WHERE t.stream_id = ANY (streams)
        UNION ALL
        SELECT ROW(h.*)::perennial.summary_paying, -1 FROM ledger.paying_of('infinity', streams) h) r
    GROUP BY r.reported HAVING sum(r.sign) <> 0
    UNION ALL
    SELECT (r.reported).stream_id, (r.reported).expires_at, (r.reported).bundle_id, (r.reported).environment, '',
           'renewal_rows', sum(r.sign)
    FROM (
        SELECT t AS reported, 1 AS sign FROM perennial.summary_renewal t WHERE t.stream_id = ANY (streams)
        UNION ALL
        SELECT ROW(h.*)::perennial.summary_renewal, -1 FROM ledger.renewals_of('infinity', streams) h) r
    GROUP BY r.reported HAVING sum(r.sign) <> 0
    UNION ALL
    SELECT (r.reported).stream_id, (r.reported).started_at, (r.reported).bundle_id, (r.reported).environment, '',
           'trial_rows', sum(r.sign)
    FROM (
        SELECT t AS reported, 1 AS sign FROM perennial.summary_trial t WHERE t.stream_id = ANY (streams)
        UNION ALL
        SELECT ROW(h.*)::perennial.summary_trial, -1 FROM ledger.trial_runs_of('infinity', streams) h) r
    GROUP BY r.reported HAVING sum(r.sign) <> 0
$$;
COMMENT ON FUNCTION ledger.rows_differing_of IS
    'Summary rows of summarised subscriptions that their history does not give (difference 1 and more), and rows of '
    'the history that the summaries lack (-1 and less)';

CREATE FUNCTION perennial.rows_differing()
RETURNS TABLE (
    stream_id bigint, at timestamptz, bundle_id text, environment text, currency text, figure text, difference bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    slice bigint[];
BEGIN
    FOR slice IN SELECT * FROM ledger.slices() LOOP
        RETURN QUERY SELECT * FROM ledger.rows_differing_of(
            ARRAY(SELECT k.stream_id FROM perennial.summarised k WHERE k.stream_id = ANY (slice)));
    END LOOP;
END $$;
COMMENT ON FUNCTION perennial.rows_differing IS 'ledger.rows_differing_of for every summarised subscription';
