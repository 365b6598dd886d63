-- Summaries of days for reports.

-- name: add_checks
-- Adds a process's answers to the current hour (apps $1, verified $2, rejected $3, failed $4) and deletes hours older
-- than 40 days.
WITH old AS (
    DELETE FROM ledger.check_hour WHERE hour < now() - interval '40 days'
)
INSERT INTO ledger.check_hour AS h (app_id, hour, verified, rejected, failed)
SELECT n.app_id, date_trunc('hour', now(), 'UTC'), n.verified, n.rejected, n.failed
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n(app_id, verified, rejected, failed)
ORDER BY n.app_id
ON CONFLICT (app_id, hour) DO UPDATE
SET verified = h.verified + EXCLUDED.verified, rejected = h.rejected + EXCLUDED.rejected,
    failed = h.failed + EXCLUDED.failed

-- name: lock_summaries
-- Makes this transaction the only one that updates the summaries, or reports that another one is at work. Disables JIT
-- and makes plans for the actual subscriptions.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.summarise')) AS locked, set_config('jit', 'off', true) AS jit,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans

-- name: find_unsummarised
-- Returns the subscriptions of the next $1 events of the feed, of the next $2 of the round through all, and at most $3
-- of those written since then; also the new positions, and whether more is waiting. If the prices differ from those of
-- the round, the round starts again.
WITH done AS (
    SELECT p.position, mark.price_mark,
           CASE WHEN p.price_mark = mark.price_mark THEN p.round_at ELSE 0 END AS round_at,
           CASE WHEN p.price_mark = mark.price_mark THEN p.rounds ELSE 0 END AS rounds
    FROM ledger.summary_progress p
    CROSS JOIN (
        SELECT md5(COALESCE(string_agg(m.price_mark::text, ',' ORDER BY m.app_id), ''))::uuid AS price_mark
        FROM ledger.price_mark m) mark
), news AS (
    SELECT f.position, e.subscription_id
    FROM done JOIN ledger.event_feed f ON f.position > done.position AND f.position <= done.position + $1::int
    JOIN ledger.event e USING (event_id)
    -- The first round reaches the others by itself.
    WHERE done.rounds > 0 OR e.subscription_id <= done.round_at
), round AS (
    SELECT s.subscription_id FROM ledger.subscription s
    WHERE s.subscription_id > (SELECT round_at FROM done) ORDER BY s.subscription_id LIMIT $2::int
), written AS (
    SELECT u.stream_id AS subscription_id FROM perennial.unsummarised u LIMIT $3::int
), feed AS (
    SELECT COALESCE(max(position), 0) AS last FROM ledger.event_feed
)
SELECT ARRAY(SELECT subscription_id FROM news WHERE subscription_id IS NOT NULL
             UNION SELECT subscription_id FROM round
             UNION SELECT subscription_id FROM written) AS subscriptions,
       GREATEST(done.position, LEAST(done.position + $1::int, feed.last)) AS position,
       CASE WHEN (SELECT count(*) FROM round) < $2::int THEN 0
            ELSE (SELECT max(subscription_id) FROM round) END AS round_at,
       done.rounds + ((SELECT count(*) FROM round) < $2::int)::int AS rounds, done.price_mark::text AS price_mark,
       feed.last > done.position + $1::int OR $3::int > 0 AND (SELECT count(*) FROM written) >= $3::int AS is_behind
FROM done CROSS JOIN feed

-- name: mark_summarised
-- Marks the subscriptions $1 as summarised in their present version. Their rows follow in the same transaction, so that
-- a later settlement or price makes the mark outdated.
INSERT INTO ledger.summarised AS t (subscription_id, recorded_at, price_mark)
SELECT s.subscription_id, s.recorded_at, m.price_mark
FROM ledger.subscription s JOIN ledger.price_mark m USING (app_id)
WHERE s.subscription_id = ANY ($1::bigint[])
ORDER BY s.subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET recorded_at = EXCLUDED.recorded_at, price_mark = EXCLUDED.price_mark

-- name: forget_summary_rows
-- Deletes the rows of the subscriptions $1 that reports read.
WITH paying AS (
    DELETE FROM ledger.summary_paying WHERE subscription_id = ANY ($1::bigint[])
), revenue AS (
    DELETE FROM ledger.summary_revenue WHERE subscription_id = ANY ($1::bigint[])
), renewals AS (
    DELETE FROM ledger.summary_renewal WHERE subscription_id = ANY ($1::bigint[])
)
DELETE FROM ledger.summary_trial WHERE subscription_id = ANY ($1::bigint[])

-- name: add_summary_rows
-- Adds the rows of the subscriptions $1 that reports read, computed from their present history.
WITH paying AS (
    INSERT INTO ledger.summary_paying
        (subscription_id, charge_id, product_id, paying_from, paying_until, ended_state, ended_reason, offer,
         monthly_milliunits, currency, price_basis)
    SELECT stream_id, charge_id, product_id, paying_from, paying_until, ended_state, ended_reason, offer,
           monthly_milliunits, currency, price_basis
    FROM ledger.paying_of('infinity', $1::bigint[])
), revenue AS (
    INSERT INTO ledger.summary_revenue
        (subscription_id, charge_id, kind, occurred_at, product_id, purchased_at, offer, storefront, amount_milliunits,
         currency, price_basis, commission_percent, commission_reason, proceeds_milliunits, recorded_at)
    SELECT stream_id, charge_id, kind, occurred_at, product_id, purchased_at, offer, storefront, amount_milliunits,
           currency, price_basis, commission_percent, commission_reason, proceeds_milliunits, recorded_at
    FROM ledger.revenue_of('infinity', $1::bigint[])
), renewals AS (
    INSERT INTO ledger.summary_renewal
        (subscription_id, product_id, expires_at, next_purchased_at, next_is_paid, was_awaited)
    SELECT stream_id, product_id, expires_at, next_purchased_at, next_is_paid, was_awaited
    FROM ledger.renewals_of('infinity', $1::bigint[])
)
INSERT INTO ledger.summary_trial (subscription_id, product_id, started_at, ends_at, paid_at, refunded_at, lost_at)
SELECT stream_id, product_id, started_at, ends_at, paid_at, refunded_at, lost_at
FROM ledger.trial_runs_of('infinity', $1::bigint[])

-- name: forget_shares
-- Subtracts the shares of the subscriptions $1 from the sums.
WITH gone AS (
    DELETE FROM ledger.summary_share WHERE subscription_id = ANY ($1::bigint[]) RETURNING *
)
INSERT INTO ledger.summary_day AS d
    (app_id, environment, day, currency,
     active, trial, paying, monthly_milliunits, began, returned, churned, trials_started, trials_converted,
     trials_lost)
SELECT s.app_id, s.environment, g.day, g.currency,
       -sum(g.active), -sum(g.trial), -sum(g.paying), -sum(g.monthly_milliunits), -sum(g.began), -sum(g.returned),
       -sum(g.churned), -sum(g.trials_started), -sum(g.trials_converted), -sum(g.trials_lost)
FROM gone g JOIN ledger.subscription s USING (subscription_id)
GROUP BY s.app_id, s.environment, g.day, g.currency
ON CONFLICT (app_id, environment, day, currency) DO UPDATE
SET active = d.active + EXCLUDED.active, trial = d.trial + EXCLUDED.trial, paying = d.paying + EXCLUDED.paying,
    monthly_milliunits = d.monthly_milliunits + EXCLUDED.monthly_milliunits, began = d.began + EXCLUDED.began,
    returned = d.returned + EXCLUDED.returned, churned = d.churned + EXCLUDED.churned,
    trials_started = d.trials_started + EXCLUDED.trials_started,
    trials_converted = d.trials_converted + EXCLUDED.trials_converted,
    trials_lost = d.trials_lost + EXCLUDED.trials_lost

-- name: add_shares
-- Adds the shares of the subscriptions $1, computed from their present history, to the sums.
WITH shares AS (
    INSERT INTO ledger.summary_share
    SELECT * FROM ledger.shares_of($1::bigint[]) RETURNING *
)
INSERT INTO ledger.summary_day AS d
    (app_id, environment, day, currency,
     active, trial, paying, monthly_milliunits, began, returned, churned, trials_started, trials_converted,
     trials_lost)
SELECT s.app_id, s.environment, g.day, g.currency,
       sum(g.active), sum(g.trial), sum(g.paying), sum(g.monthly_milliunits), sum(g.began), sum(g.returned),
       sum(g.churned), sum(g.trials_started), sum(g.trials_converted), sum(g.trials_lost)
FROM shares g JOIN ledger.subscription s USING (subscription_id)
GROUP BY s.app_id, s.environment, g.day, g.currency
ON CONFLICT (app_id, environment, day, currency) DO UPDATE
SET active = d.active + EXCLUDED.active, trial = d.trial + EXCLUDED.trial, paying = d.paying + EXCLUDED.paying,
    monthly_milliunits = d.monthly_milliunits + EXCLUDED.monthly_milliunits, began = d.began + EXCLUDED.began,
    returned = d.returned + EXCLUDED.returned, churned = d.churned + EXCLUDED.churned,
    trials_started = d.trials_started + EXCLUDED.trials_started,
    trials_converted = d.trials_converted + EXCLUDED.trials_converted,
    trials_lost = d.trials_lost + EXCLUDED.trials_lost

-- name: move_summaries
-- Stores the progress of the summaries: position $1 of the feed, subscription $2 of round $3, at the prices of $4.
UPDATE ledger.summary_progress
SET position = $1::bigint, round_at = $2::bigint, rounds = $3::bigint, price_mark = $4::text::uuid, summarised_at = now()
