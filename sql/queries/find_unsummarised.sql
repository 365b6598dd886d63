-- The subscriptions of the next $1 events of the feed and the next $2 of the round through all, and how far that goes.
WITH done AS (
    SELECT position, round_at, rounds FROM ledger.summary_progress
), news AS (
    SELECT f.position, e.subscription_id
    FROM done JOIN ledger.event_feed f ON f.position > done.position AND f.position <= done.position + $1::int
    JOIN ledger.event e USING (event_id)
    -- The first round comes to the others by itself.
    WHERE done.rounds > 0 OR e.subscription_id <= done.round_at
), round AS (
    SELECT s.subscription_id FROM ledger.subscription s
    WHERE s.subscription_id > (SELECT round_at FROM done) ORDER BY s.subscription_id LIMIT $2::int
)
SELECT ARRAY(SELECT subscription_id FROM news WHERE subscription_id IS NOT NULL
             UNION SELECT subscription_id FROM round) AS subscriptions,
       GREATEST(done.position, LEAST(
           done.position + $1::int, (SELECT COALESCE(max(position), 0) FROM ledger.event_feed))) AS position,
       CASE WHEN (SELECT count(*) FROM round) < $2::int THEN 0
            ELSE (SELECT max(subscription_id) FROM round) END AS round_at,
       done.rounds + ((SELECT count(*) FROM round) < $2::int)::int AS rounds
FROM done
