-- Returns the position after which the feed has everything that was recorded from $1 on. A minute more is for transactions
-- that committed in another order than they were recorded.
SELECT COALESCE(max(f.position), 0) AS position FROM (
    SELECT f.position FROM ledger.event_feed f JOIN ledger.event e USING (event_id)
    WHERE e.recorded_at < $1::timestamptz - interval '1 minute' ORDER BY f.position DESC LIMIT 1) f
