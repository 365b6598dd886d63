-- Worker: returns how webhook $1 is under fence $2, with the feed's newest position. No row: another worker has it, or it is
-- off.
SELECT w.url, w.concurrency, w.sealed_secret, w.sealed_previous_secret, w.position, w.state, w.rests, w.reason,
       w.state = 'resting' AND w.rest_until > clock_timestamp() AS is_resting, f.position AS newest,
       EXISTS (SELECT FROM ledger.webhook_line l
               WHERE l.webhook_id = w.webhook_id AND l.next_at <= clock_timestamp()) AS has_due
FROM ledger.webhook w CROSS JOIN ledger.feed f
WHERE w.webhook_id = $1::int AND w.fence = $2::bigint AND w.state <> 'off'
