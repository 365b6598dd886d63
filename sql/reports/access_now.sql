-- Subscriptions with access now, by product and state
-- Variables: bundle_id.
-- Production and sandbox have separate rows. in_trial counts those in a free trial. oldest_check is the time of the
-- oldest of Apple's answers behind the row. payers leaves out trials, family shares, seats of groups and ownerships that are
-- not known; seats are those that groups pay for. For past days, and for earlier knowledge, see active_subscriptions.
\if :{?bundle_id} \else \set bundle_id '' \endif
SELECT bundle_id, environment, product_id, state, count(*) AS subscriptions,
       count(*) FILTER (WHERE will_renew) AS will_renew,
       count(*) FILTER (WHERE 'trial' = ANY (flags)) AS in_trial,
       min(checked_at) AS oldest_check,
       count(*) FILTER (WHERE NOT flags && '{trial,family_shared,assigned}') AS payers,
       COALESCE(sum(seats), 0) AS seats
FROM perennial.subscription_now
WHERE entitled AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
GROUP BY bundle_id, environment, product_id, state
ORDER BY bundle_id, environment, subscriptions DESC, product_id, state;
