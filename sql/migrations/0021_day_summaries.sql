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
CREATE TRIGGER subscription_leaves_the_sums BEFORE DELETE ON ledger.subscription
    FOR EACH ROW EXECUTE FUNCTION ledger.subtract_share();
COMMENT ON FUNCTION ledger.subtract_share IS 'Subtracts the shares of an erased subscription from the sums';

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
               CASE WHEN 'trial' = ANY (t.flags) AND NOT 'family_shared' = ANY (t.flags) THEN at.change
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
