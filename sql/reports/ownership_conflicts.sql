-- Subscriptions that more than one customer sent
-- Variables: bundle_id, environment.
-- A subscription in receipts of several customers: one Apple Account used by several of your accounts, or a receipt
-- that was passed on. owner is its present owner by the app's policy. claimants are all who sent it, in the order of
-- their uploads. transfers counts the changes of owner, recent_transfers those within 30 days (after three the owner
-- stays); where the owner before only pointed at it, by the bare id of a transaction, it is none. Most contested first.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
WITH claim AS (
    SELECT bundle_id, environment, original_transaction_id, customer, min(uploaded_at) AS first_at, max(uploaded_at) AS last_at
    FROM perennial.upload_log
    WHERE environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
    GROUP BY bundle_id, environment, original_transaction_id, customer
), contested AS (
    SELECT bundle_id, environment, original_transaction_id, array_agg(customer ORDER BY first_at, customer) AS claimants,
           max(last_at) AS last_claimed_at
    FROM claim GROUP BY bundle_id, environment, original_transaction_id HAVING count(*) > 1
)
SELECT c.bundle_id, c.environment, c.original_transaction_id, owner.customer AS owner,
       array_to_string(c.claimants, ', ') AS claimants,
       count(e.kind) AS transfers, count(e.kind) FILTER (WHERE e.occurred_at > now() - interval '30 days') AS recent_transfers,
       c.last_claimed_at
FROM contested c
LEFT JOIN perennial.ownership_log owner
    ON owner.bundle_id = c.bundle_id AND owner.environment = c.environment AND owner.kind = 'subscription'
    AND owner.original_transaction_id = c.original_transaction_id AND owner.known_until IS NULL
    AND owner.valid_from <= now() AND now() < owner.valid_until
LEFT JOIN perennial.event_log e
    ON e.bundle_id = c.bundle_id AND e.environment = c.environment
    AND e.original_transaction_id = c.original_transaction_id AND e.kind = 'ownership.transferred'
    AND e.detail -> 'from_pointer' IS DISTINCT FROM 'true'
GROUP BY c.bundle_id, c.environment, c.original_transaction_id, owner.customer, c.claimants, c.last_claimed_at
ORDER BY transfers DESC, c.last_claimed_at DESC, c.bundle_id, c.original_transaction_id;
