-- Adds the rows of the subscriptions $1 that reports read, computed from their present history.
WITH paying AS (
    INSERT INTO ledger.summary_paying
        (subscription_id, charge_id, product_id, paying_from, paying_until, ended_state, ended_reason, offer,
         monthly_milliunits, currency, price_basis)
    SELECT stream_id, charge_id, product_id, paying_from, paying_until, ended_state, ended_reason, offer,
           monthly_milliunits, currency, price_basis
    FROM ledger.paying_of('infinity', $1::bigint[])
), revenue AS (
    INSERT INTO ledger.summary_revenue
        (subscription_id, charge_id, kind, occurred_at, product_id, purchased_at, offer, storefront, amount_milliunits,
         currency, price_basis, commission_percent, commission_reason, proceeds_milliunits, recorded_at)
    SELECT stream_id, charge_id, kind, occurred_at, product_id, purchased_at, offer, storefront, amount_milliunits,
           currency, price_basis, commission_percent, commission_reason, proceeds_milliunits, recorded_at
    FROM ledger.revenue_of('infinity', $1::bigint[])
), renewals AS (
    INSERT INTO ledger.summary_renewal
        (subscription_id, product_id, expires_at, next_purchased_at, next_is_paid, was_awaited)
    SELECT stream_id, product_id, expires_at, next_purchased_at, next_is_paid, was_awaited
    FROM ledger.renewals_of('infinity', $1::bigint[])
)
INSERT INTO ledger.summary_trial (subscription_id, product_id, started_at, ends_at, paid_at, refunded_at, lost_at)
SELECT stream_id, product_id, started_at, ends_at, paid_at, refunded_at, lost_at
FROM ledger.trial_runs_of('infinity', $1::bigint[])
