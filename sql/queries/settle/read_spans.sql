-- Settlement: returns the open timeline of subscriptions ($1), in order.
SELECT p.subscription_id, lower(p.valid) AS valid_from,
       CASE WHEN upper_inf(p.valid) THEN NULL ELSE upper(p.valid) END AS valid_to,
       lower(p.known) AS known_from, p.state::text AS state, p.reason::text AS reason, p.entitled, p.product_id, p.flags,
       p.allowed_until
FROM ledger.subscription_span p
WHERE p.subscription_id = ANY($1::bigint[]) AND upper_inf(p.known)
ORDER BY p.subscription_id, lower(p.valid)
