-- Confirmation: returns the state of the locked subscriptions ($1) by Apple's clock, and the database's clock after the
-- locks.
SELECT s.subscription_id, s.polled_by, s.as_of, s.expires_at, s.head_starts_at, s.access_ends_at, s.renewal_expected,
       s.will_renew, current.state::text AS state, current.reason::text AS reason,
       lower(current.valid) AS since, CASE WHEN NOT upper_inf(current.valid) THEN upper(current.valid) END AS until,
       clock_timestamp() AS recorded_at
FROM ledger.subscription s
CROSS JOIN LATERAL (
    SELECT p.state, p.reason, p.valid FROM ledger.subscription_span p
    WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND lower(p.valid) <= s.as_of
    ORDER BY lower(p.valid) DESC LIMIT 1) current
WHERE s.subscription_id = ANY($1::bigint[]) AND s.answered_by = s.polled_by AND s.suspected IS NULL
