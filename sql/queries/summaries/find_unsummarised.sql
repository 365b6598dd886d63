-- Returns the subscriptions of the next $1 events of the feed, of the next $2 of the round through all, and at most $3
-- of those written since then; also the new positions. If the prices differ from those of the round, the round starts
-- again.
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
)
SELECT ARRAY(SELECT subscription_id FROM news WHERE subscription_id IS NOT NULL
             UNION SELECT subscription_id FROM round
             UNION SELECT subscription_id FROM written) AS subscriptions,
       GREATEST(done.position, LEAST(
           done.position + $1::int, (SELECT COALESCE(max(position), 0) FROM ledger.event_feed))) AS position,
       CASE WHEN (SELECT count(*) FROM round) < $2::int THEN 0
            ELSE (SELECT max(subscription_id) FROM round) END AS round_at,
       done.rounds + ((SELECT count(*) FROM round) < $2::int)::int AS rounds, done.price_mark::text AS price_mark
FROM done
