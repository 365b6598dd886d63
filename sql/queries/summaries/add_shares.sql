-- Adds the shares of the subscriptions $1, computed from their present history, to the sums.
WITH shares AS (
    INSERT INTO ledger.summary_share
    SELECT * FROM ledger.shares_of($1::bigint[]) RETURNING *
)
INSERT INTO ledger.summary_day AS d
    (app_id, environment, day, currency,
     active, trial, paying, monthly_milliunits, began, returned, churned, trials_started, trials_converted,
     trials_lost)
SELECT s.app_id, s.environment, g.day, g.currency,
       sum(g.active), sum(g.trial), sum(g.paying), sum(g.monthly_milliunits), sum(g.began), sum(g.returned),
       sum(g.churned), sum(g.trials_started), sum(g.trials_converted), sum(g.trials_lost)
FROM shares g JOIN ledger.subscription s USING (subscription_id)
GROUP BY s.app_id, s.environment, g.day, g.currency
ON CONFLICT (app_id, environment, day, currency) DO UPDATE
SET active = d.active + EXCLUDED.active, trial = d.trial + EXCLUDED.trial, paying = d.paying + EXCLUDED.paying,
    monthly_milliunits = d.monthly_milliunits + EXCLUDED.monthly_milliunits, began = d.began + EXCLUDED.began,
    returned = d.returned + EXCLUDED.returned, churned = d.churned + EXCLUDED.churned,
    trials_started = d.trials_started + EXCLUDED.trials_started,
    trials_converted = d.trials_converted + EXCLUDED.trials_converted,
    trials_lost = d.trials_lost + EXCLUDED.trials_lost
