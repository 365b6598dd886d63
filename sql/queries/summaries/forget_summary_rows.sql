-- Deletes the rows of the subscriptions $1 that reports read.
WITH paying AS (
    DELETE FROM ledger.summary_paying WHERE subscription_id = ANY ($1::bigint[])
), revenue AS (
    DELETE FROM ledger.summary_revenue WHERE subscription_id = ANY ($1::bigint[])
), renewals AS (
    DELETE FROM ledger.summary_renewal WHERE subscription_id = ANY ($1::bigint[])
)
DELETE FROM ledger.summary_trial WHERE subscription_id = ANY ($1::bigint[])
