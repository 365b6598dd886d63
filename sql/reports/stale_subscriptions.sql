-- Subscriptions whose state may be out of date
-- Variables: bundle_id, environment, minutes.
-- outage allowance: access goes on past its end, because Apple was not asked since; allowed_until is the end of the
-- allowance. overdue: the next check was due more than minutes (5) ago. An answer that is merely old is not stale:
-- between checks no change is expected. Those in the outage allowance come first, and the earliest end is at the top.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?minutes} \else \set minutes 5 \endif
SELECT CASE WHEN is_allowed THEN 'outage allowance' ELSE 'overdue' END AS why, r.bundle_id, r.environment,
       r.original_transaction_id, t.product_id, t.state, r.expires_at,
       CASE WHEN is_allowed THEN t.access_until END AS allowed_until, r.will_renew, r.as_of, r.checked_at, r.next_check_at
FROM perennial.renewal_now r
JOIN perennial.timeline t
    ON t.subscription_id = r.stream_id AND t.known_until IS NULL AND t.valid_from <= now() AND now() < t.valid_until
CROSS JOIN LATERAL (SELECT NOT t.entitled AND COALESCE(t.access_until > now(), false) AS is_allowed) h
WHERE r.environment = perennial.known_environment(:'environment')
  AND (:'bundle_id' = '' OR r.bundle_id = perennial.known_app(:'bundle_id'))
  AND (is_allowed OR r.next_check_at < now() - :'minutes'::int * interval '1 minute')
ORDER BY NOT is_allowed, allowed_until, r.next_check_at, r.bundle_id, r.original_transaction_id;
