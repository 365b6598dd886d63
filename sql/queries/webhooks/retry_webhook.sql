-- Makes everything that waits for webhook $1 due now, and ends its rest.
WITH woken AS (
    UPDATE ledger.webhook w SET rest_until = clock_timestamp() WHERE w.webhook_id = $1::int AND w.state = 'resting')
UPDATE ledger.webhook_line l SET next_at = clock_timestamp() WHERE l.webhook_id = $1::int
