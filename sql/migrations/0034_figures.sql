-- Figures by one rule: what came after a period counts as its event says, variables of reports are checked and read alike.

-- The apps, by name.
CREATE VIEW perennial.app_now AS
SELECT bundle_id, name, created_at FROM ledger.app;

-- What happened to each subscription, with Apple's clock, and by which names its periods are known: both have the keys of
-- the other views.
CREATE VIEW perennial.subscription_event AS
SELECT subscription_id AS stream_id, kind::text AS kind, product_id, occurred_at, as_of, recorded_at, version, ordinal, detail
FROM ledger.event WHERE subscription_id IS NOT NULL;
CREATE VIEW perennial.period_alias AS
SELECT p.subscription_id AS stream_id, a.transaction_id, p.period_id AS charge_id
FROM ledger.transaction_alias a JOIN ledger.period p USING (period_id);
-- Without this the planner takes each kind for rare.
CREATE STATISTICS ledger.event_kind ON (kind::text) FROM ledger.event;

-- Variables of reports. Declared immutable, which holds for the one statement that a report is: the planner calls them
-- before anything runs, so that it sees a literal, each is read once, and what is wrong with it is said even of no rows.

-- A date or an instant; without a zone of its own it is in time_zone.
CREATE FUNCTION perennial.instant(value text, time_zone text) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET TimeZone = 'UTC' AS $$
BEGIN
    PERFORM set_config('TimeZone', time_zone, true);
    RETURN value::timestamptz;
END $$;
-- The first day whose end comes after it, in time_zone. For until: days before this one end in time.
CREATE FUNCTION perennial.day_of(value text, time_zone text) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (perennial.instant(value, time_zone) AT TIME ZONE time_zone)::date
$$;

-- The same bundle id, if there is such an app.
CREATE FUNCTION perennial.known_app(bundle_id text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    known_max constant int := 20;
    known text;
BEGIN
    IF EXISTS (SELECT FROM perennial.app_now a WHERE a.bundle_id = known_app.bundle_id) THEN
        RETURN bundle_id;
    END IF;
    SELECT string_agg(n.bundle_id, ', ' ORDER BY n.bundle_id) FILTER (WHERE n.place <= known_max)
               || CASE WHEN count(*) > known_max THEN format(' and %s more', count(*) - known_max) ELSE '' END
    INTO known
    FROM (SELECT a.bundle_id, row_number() OVER (ORDER BY a.bundle_id) AS place FROM perennial.app_now a) n;
    RAISE EXCEPTION 'There is no app %; %.', bundle_id,
        COALESCE('known: ' || known, 'there is none yet, add it with `perennial app add`');
END $$;

-- The same environment, if there is such a one.
CREATE FUNCTION perennial.known_environment(environment text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF environment IN ('Production', 'Sandbox') THEN
        RETURN environment;
    END IF;
    RAISE EXCEPTION 'There is no environment %; known: Production, Sandbox.', environment;
END $$;

-- How long a bucket is.
CREATE FUNCTION perennial.bucket_length(bucket text) RETURNS interval
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    CASE lower(bucket)
        WHEN 'day', 'week', 'month', 'year' THEN RETURN ('1 ' || bucket)::interval;
        WHEN 'quarter' THEN RETURN interval '3 months';
        ELSE RAISE EXCEPTION 'There is no bucket %; known: day, week, month, quarter, year.', bucket;
    END CASE;
END $$;

-- Whether all of a bucket that begins at since, in time_zone, lies from `from` until `until`, and is over at known_at.
CREATE FUNCTION perennial.is_complete(
    since timestamp, bucket text, time_zone text, "from" text, until text, known_at timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT since AT TIME ZONE time_zone >= perennial.instant("from", time_zone)
        AND (since + perennial.bucket_length(bucket)) AT TIME ZONE time_zone
            <= LEAST(perennial.instant(until, time_zone), known_at, now())
$$;

-- Which event the period after another one would have had, where the feed has none because both were there at first sight.
-- The rule is that of the events. Whether renewal was on at an end before first sight is unknown: only what Apple was
-- still charging for, or what came within the tolerance, went on.
CREATE FUNCTION perennial.kind_of_return(environment text, gap interval, was_failing boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN gap > interval '65 days' THEN 'subscription.reactivated'
                WHEN was_failing THEN 'subscription.recovered'
                WHEN gap <= CASE environment WHEN 'Sandbox' THEN interval '10 minutes' ELSE interval '1 hour' END
                    THEN 'subscription.renewed'
                ELSE 'subscription.reactivated' END
$$;

-- The event of each period that appeared after first sight, as known at an instant: one of the four that tell how it came,
-- or, where there is none, that it replaced another one at once.
CREATE FUNCTION perennial.period_events_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (stream_id bigint, charge_id bigint, kind text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT DISTINCT ON (a.charge_id) e.stream_id, a.charge_id, e.kind
    FROM perennial.subscription_event e
    JOIN perennial.period_alias a
        -- The second is an expression that the planner knows nothing of, else it would take such pairs for rare.
        ON a.transaction_id = e.detail ->> 'transaction_id' AND COALESCE(a.stream_id = e.stream_id, false)
    WHERE e.kind IN ('trial.converted', 'subscription.recovered', 'subscription.renewed', 'subscription.reactivated',
                     'product.changed')
      AND e.recorded_at <= known_at AND (streams IS NULL OR e.stream_id = ANY (streams))
    ORDER BY a.charge_id, e.kind = 'product.changed', e.version DESC, e.ordinal DESC
$$;

-- The paid periods that come to their end, neither refunded before nor replaced, with what came next. next_is_paid: a
-- period that was paid for, and not after a lapse; was_awaited: Apple charged for it later, after it could not at first.
-- Both by the event of that period, so that a lapse is the same as in the feed.
CREATE OR REPLACE FUNCTION perennial.renewals_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.bundle_id, k.environment, p.stream_id, p.product_id, p.expires_at, p.next_purchased_at,
           p.next_is_paid AND next.kind <> 'subscription.reactivated', COALESCE(next.kind = 'subscription.recovered', false)
    FROM (
        SELECT c.stream_id, c.product_id, c.expires_at, paid.is_paid,
               NOT c.is_upgraded AND COALESCE(c.cancelled_at >= c.expires_at, true) AS comes_to_its_end,
               lead(c.charge_id) OVER stream AS next_charge_id, lead(c.purchased_at) OVER stream AS next_purchased_at,
               lead(paid.is_paid) OVER stream AS next_is_paid
        FROM perennial.period_told c
        -- What is neither a trial nor shared by the family was paid for.
        CROSS JOIN LATERAL (SELECT NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial' AS is_paid) paid
        WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
          AND COALESCE(c.cancelled_at > c.purchased_at, true) AND (streams IS NULL OR c.stream_id = ANY (streams))
        WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.expires_at, c.charge_id)) p
    JOIN perennial.subscription_key k USING (stream_id)
    LEFT JOIN perennial.period_events_of(known_at, streams) told
        ON told.charge_id = p.next_charge_id AND told.kind <> 'product.changed'
    CROSS JOIN LATERAL (
        SELECT CASE WHEN told.kind IS NOT NULL THEN told.kind
                    WHEN p.next_purchased_at IS NOT NULL THEN perennial.kind_of_return(
                        k.environment, p.next_purchased_at - p.expires_at,
                        p.next_purchased_at > p.expires_at AND EXISTS (
                            SELECT FROM perennial.timeline t
                            WHERE t.subscription_id = p.stream_id
                              AND t.valid_from <= p.expires_at AND p.expires_at < t.valid_until
                              AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
                              AND t.state IN ('grace_period', 'billing_retry'))) END AS kind) next
    WHERE p.is_paid AND p.comes_to_its_end
$$;

-- Trials of one subscription that follow each other, as one, and when they became paid. Trials that had ended at first
-- sight, or had been followed by a charge, are not among them: the feed tells nothing of how they went.
CREATE OR REPLACE FUNCTION perennial.trial_runs_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           CASE WHEN COALESCE(told.kind, perennial.kind_of_return(r.environment, r.next_purchased_at - r.ends_at, false))
                     <> 'subscription.reactivated' THEN r.next_purchased_at END
    FROM (
        SELECT p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, min(p.product_id) AS product_id,
               min(p.purchased_at) AS started_at, max(LEAST(p.expires_at, p.cancelled_at)) AS ends_at,
               max(p.next_charge_id) FILTER (WHERE p.is_last) AS next_charge_id,
               max(p.next_purchased_at) FILTER (WHERE p.is_last) AS next_purchased_at,
               max(p.next_known_at) FILTER (WHERE p.is_last) AS next_known_at
        FROM (
            SELECT b.*, count(*) FILTER (WHERE b.begins) OVER (
                       PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id) AS run
            FROM (
                SELECT c.*, lag(c.offer) OVER stream IS DISTINCT FROM c.offer AS begins,
                       lead(c.offer) OVER stream IS DISTINCT FROM c.offer AS is_last,
                       lead(c.charge_id) OVER stream AS next_charge_id,
                       lead(c.purchased_at) OVER stream AS next_purchased_at,
                       lead(c.first_known_at) OVER stream AS next_known_at
                FROM perennial.period_history c
                WHERE NOT c.is_family_shared AND COALESCE(c.cancelled_at > c.purchased_at, true)
                  AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
                  AND (streams IS NULL OR c.stream_id = ANY (streams))
                  AND c.stream_id IN (
                      SELECT h.stream_id FROM perennial.period_told h
                      WHERE h.offer = 'trial' AND (streams IS NULL OR h.stream_id = ANY (streams)))
                WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.charge_id)) b) p
        WHERE p.offer = 'trial'
        GROUP BY p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, p.run) r
    JOIN perennial.subscription_event first
        ON first.stream_id = r.stream_id AND first.kind IN ('subscription.started', 'trial.started')
        AND first.recorded_at <= known_at AND first.as_of < r.ends_at
        AND COALESCE(first.recorded_at < r.next_known_at, true)
    LEFT JOIN perennial.period_events_of(known_at, streams) told ON told.charge_id = r.next_charge_id
$$;

-- How trials went, by the events. What is not told before known_at has not happened, and what Apple charges ahead has not
-- until its date. A trial is 'converted' by trial.converted, or when something paid replaced it at once; 'lost' by its end
-- or refund, and 65 days after its end in any case (Apple tries to charge for 60); else 'running' or, until Apple has
-- been asked or has given up, 'pending'.
CREATE OR REPLACE FUNCTION perennial.trials_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, outcome text, decided_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           o.outcome,
           CASE o.outcome WHEN 'converted' THEN r.paid_at
                          WHEN 'lost' THEN COALESCE(r.lost_at, r.ends_at + interval '65 days') END
    FROM (
        SELECT t.bundle_id, t.environment, t.stream_id, t.original_transaction_id, t.product_id, t.started_at, t.ends_at,
               t.paid_at, min(e.occurred_at) AS lost_at
        FROM perennial.trial_runs_told(known_at, streams) t
        LEFT JOIN perennial.subscription_event e
            ON e.stream_id = t.stream_id AND e.occurred_at >= t.started_at AND e.recorded_at <= known_at
            AND (streams IS NULL OR e.stream_id = ANY (streams))
            AND (e.kind IN ('trial.expired', 'refund.granted')
                 OR (e.kind = 'billing.grace_expired' AND e.detail ? 'reason'))
        GROUP BY t.bundle_id, t.environment, t.stream_id, t.original_transaction_id, t.product_id, t.started_at, t.ends_at,
                 t.paid_at) r
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.paid_at <= LEAST(known_at, now()) THEN 'converted'
                    WHEN r.lost_at IS NOT NULL THEN 'lost'
                    WHEN r.ends_at > LEAST(known_at, now()) THEN 'running'
                    WHEN r.ends_at + interval '65 days' <= LEAST(known_at, now()) THEN 'lost'
                    ELSE 'pending' END AS outcome) o
    WHERE r.started_at <= LEAST(known_at, now())
$$;

-- As before, but a gap begins when service that was paid for ended: a period that was refunded, a trial and what the family
-- shares are none.
CREATE OR REPLACE FUNCTION perennial.revenue_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moved.occurred_at, c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id,
           moved.kind, c.product_id, c.purchased_at, c.offer, c.storefront, moved.amount, c.currency, c.price_basis,
           cut.percent, cut.reason, round(moved.amount * (100 - cut.percent) / 100.0)::bigint, moved.recorded_at
    FROM (
        SELECT served.*, served.service - COALESCE(max(served.service) FILTER (WHERE served.begins_anew) OVER (
                   PARTITION BY served.stream_id, served.kind ORDER BY served.purchased_at, served.charge_id), '0') AS service_before
        FROM (
            SELECT r.*,
                   sum(CASE WHEN r.is_service THEN GREATEST(r.serves_until - r.purchased_at, interval '0')
                            ELSE interval '0' END) OVER before AS service,
                   r.purchased_at > max(r.serves_until) FILTER (WHERE r.is_service) OVER before + interval '60 days'
                       AS begins_anew
            FROM (
                SELECT k.*,
                       k.offer IS DISTINCT FROM 'trial' AND NOT k.is_family_shared
                           AND (k.cancelled_at IS NULL OR k.is_upgraded) AS is_service,
                       LEAST(k.expires_at, k.replaced_at) AS serves_until
                FROM (
                    SELECT h.*,
                           -- A sandbox row may be replaced without saying when: when the next period began, or at once if
                           -- it was charged ahead of a period that another one had already begun to cover.
                           CASE WHEN h.is_upgraded THEN COALESCE(h.cancelled_at, CASE
                               WHEN lag(h.expires_at) OVER stream > h.purchased_at THEN h.purchased_at
                               ELSE lead(h.purchased_at) OVER stream END) END AS replaced_at
                    FROM perennial.charges_of(known_at, streams) h
                    WINDOW stream AS (PARTITION BY h.stream_id, h.kind ORDER BY h.purchased_at, h.charge_id)) k) r
            WINDOW before AS (
                PARTITION BY r.stream_id, r.kind ORDER BY r.purchased_at, r.charge_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) served
    ) c
    LEFT JOIN perennial.small_business_history small
        ON small.bundle_id = c.bundle_id AND small.valid_from <= c.purchased_at AND c.purchased_at < small.valid_until
        AND small.known_from <= known_at AND COALESCE(small.known_until > known_at, true)
    CROSS JOIN LATERAL (
        -- A year of Apple's calendar may be two hours short of 365 days on ours.
        SELECT CASE WHEN small.bundle_id IS NOT NULL OR c.service_before >= interval '364 days 22 hours' THEN 15
                    ELSE 30 END AS percent,
               CASE WHEN small.bundle_id IS NOT NULL THEN 'small_business'
                    WHEN c.service_before >= interval '364 days 22 hours' THEN 'after_one_year'
                    ELSE 'standard' END AS reason) cut
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, c.amount_milliunits AS amount, c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at, -c.amount_milliunits, c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND NOT c.is_upgraded
        UNION ALL
        -- When it was replaced is not known if another subscription did it without Apple saying so: then nor is the amount.
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at),
               CASE WHEN c.replaced_at IS NOT NULL THEN
                   -round(c.amount_milliunits * LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                       / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0)))::bigint END,
               COALESCE(c.cancellation_known_at, c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, true)) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;

-- What the summaries have by the rules of before is not read until they have been through everything anew.
UPDATE ledger.summary_progress SET rounds = 0, round_at = 0;
