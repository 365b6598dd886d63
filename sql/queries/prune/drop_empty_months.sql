-- Prune: drops the partition of one month before $1 that has no answers left; 0 when there is none, or it is being
-- read.
SELECT ledger.drop_empty_observation_months($1::timestamptz) AS months
