-- Reports at a million subscriptions: what moved past figures is found by parallel workers, and of one-time purchases only
-- what something else was said of; the summaries are checked with as much memory as a part of the subscriptions needs.

-- Subscriptions and one-time purchases of which something else was said between two moments of knowing.
CREATE FUNCTION perennial.told_between(known_before timestamptz, known_after timestamptz)
RETURNS TABLE (kind text, stream_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH told AS (
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
    SELECT t.kind, t.stream_id FROM told t
    UNION
    -- A price that was said may now speak of something else that is in the same receipt.
    SELECT other.kind, other.stream_id
    FROM perennial.price_said w JOIN perennial.price_said other USING (said_id)
    WHERE (w.said_at > known_before AND w.said_at <= known_after)
       OR (w.price_milliunits IS NOT NULL AND (w.kind, w.stream_id) IN (SELECT t.kind, t.stream_id FROM told t));
END
$$;

-- As before, of that alone: the rest would cancel out.
CREATE OR REPLACE FUNCTION perennial.restated_as_known(known_before timestamptz, known_after timestamptz, time_zone text)
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
    INTO streams, bought FROM perennial.told_between(known_before, known_after) t;
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
        FROM perennial.paying_days_of(knowing.at, time_zone, streams) d;
        RETURN QUERY
        SELECT 'revenue', knowing.sign, r.bundle_id, r.environment, r.charge_kind, r.stream_id, r.original_transaction_id,
               r.product_id, r.currency, (r.occurred_at AT TIME ZONE time_zone)::date,
               (r.occurred_at AT TIME ZONE time_zone)::date + 1, r.amount_milliunits
        FROM (
            SELECT * FROM perennial.revenue_of(knowing.at, streams)
            UNION ALL
            SELECT * FROM perennial.revenue_of(knowing.at, NULL) r
            WHERE r.charge_kind = 'purchase' AND r.stream_id = ANY (bought) AND cardinality(bought) > 0) r;
    END LOOP;
END
$$;

-- A recomputation reads every history, and no row that is kept: naming the subscriptions says so. So many at a time that
-- they fit into memory.
CREATE FUNCTION perennial.slices(size int DEFAULT 10000) RETURNS SETOF bigint[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT array_agg(n.stream_id)
    FROM (SELECT k.stream_id, row_number() OVER (ORDER BY k.stream_id) AS place FROM perennial.subscription_key k) n
    GROUP BY (n.place - 1) / size
$$;
CREATE OR REPLACE FUNCTION perennial.shares_recomputed()
RETURNS TABLE (
    subscription_id bigint, day date, currency text, active int, trial int, paying int, monthly_milliunits bigint,
    began int, returned int, churned int, trials_started int, trials_converted int, trials_lost int)
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100000 SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    slice bigint[];
BEGIN
    FOR slice IN SELECT * FROM perennial.slices() LOOP
        RETURN QUERY SELECT * FROM perennial.shares_of(slice);
    END LOOP;
END $$;

-- Rows that reports read and the history does not tell (1 and more), or the other way round (-1 and less).
CREATE FUNCTION perennial.rows_differing()
RETURNS TABLE (at timestamptz, bundle_id text, environment text, currency text, figure text, difference bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    slice bigint[];
BEGIN
    FOR slice IN SELECT * FROM perennial.slices() LOOP
        slice := ARRAY(SELECT k.stream_id FROM perennial.summarised k WHERE k.stream_id = ANY (slice));
        RETURN QUERY
        SELECT (r.told).occurred_at, (r.told).bundle_id, (r.told).environment, COALESCE((r.told).currency, ''),
               'revenue_rows', sum(r.sign)
        FROM (
            SELECT t AS told, 1 AS sign FROM perennial.summary_revenue t WHERE t.stream_id = ANY (slice)
            UNION ALL
            SELECT ROW(h.*)::perennial.summary_revenue, -1 FROM perennial.revenue_of('infinity', slice) h) r
        GROUP BY r.told HAVING sum(r.sign) <> 0;
        RETURN QUERY
        SELECT (r.told).paying_from, (r.told).bundle_id, (r.told).environment, COALESCE((r.told).currency, ''),
               'paying_rows', sum(r.sign)
        FROM (
            SELECT t AS told, 1 AS sign FROM perennial.summary_paying t WHERE t.stream_id = ANY (slice)
            UNION ALL
            SELECT ROW(h.*)::perennial.summary_paying, -1 FROM perennial.paying_of('infinity', slice) h) r
        GROUP BY r.told HAVING sum(r.sign) <> 0;
        RETURN QUERY
        SELECT (r.told).expires_at, (r.told).bundle_id, (r.told).environment, '', 'renewal_rows', sum(r.sign)
        FROM (
            SELECT t AS told, 1 AS sign FROM perennial.summary_renewal t WHERE t.stream_id = ANY (slice)
            UNION ALL
            SELECT ROW(h.*)::perennial.summary_renewal, -1 FROM perennial.renewals_of('infinity', slice) h) r
        GROUP BY r.told HAVING sum(r.sign) <> 0;
        RETURN QUERY
        SELECT (r.told).started_at, (r.told).bundle_id, (r.told).environment, '', 'trial_rows', sum(r.sign)
        FROM (
            SELECT t AS told, 1 AS sign FROM perennial.summary_trial t WHERE t.stream_id = ANY (slice)
            UNION ALL
            SELECT ROW(h.*)::perennial.summary_trial, -1 FROM perennial.trial_runs_of('infinity', slice) h) r
        GROUP BY r.told HAVING sum(r.sign) <> 0;
    END LOOP;
END $$;
