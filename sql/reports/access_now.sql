-- Subscriptions with access now, by product and state
-- Variables: bundle_id.
-- Production and sandbox have separate rows. in_trial counts those in a free trial. oldest_check is the time of the
-- oldest of Apple's answers behind the row. payers leaves out trials, family shares, seats of groups, ownerships that are
-- not known, and what a payer keeps whose period moved to another customer's subscription, where it is paid; seats are
-- those that groups pay for. For past days, and for earlier knowledge, see active_subscriptions.
\if :{?bundle_id} \else \set bundle_id '' \endif
SELECT bundle_id, environment, product_id, state, count(*) AS subscriptions,
       count(*) FILTER (WHERE will_renew) AS will_renew,
       count(*) FILTER (WHERE 'trial' = ANY (flags)) AS in_trial,
       min(checked_at) AS oldest_check,
       count(*) FILTER (WHERE NOT flags && '{trial,family_shared,assigned}' AND NOT is_paid_elsewhere) AS payers,
       COALESCE(sum(seats), 0) AS seats
FROM perennial.subscription_now n
CROSS JOIN LATERAL (
    SELECT n.state = 'awaiting_renewal' AND n.reason = 'replacement' AND NOT EXISTS (
        SELECT FROM perennial.period_history p
        WHERE p.bundle_id = n.bundle_id AND p.environment = n.environment
          AND p.original_transaction_id = n.original_transaction_id AND p.known_until IS NULL
          AND p.purchased_at <= now() AND p.expires_at > now()) AS is_paid_elsewhere) moved
WHERE entitled AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
GROUP BY bundle_id, environment, product_id, state
ORDER BY bundle_id, environment, subscriptions DESC, product_id, state;
