-- Prune: gives back the disk of one of the months before $1 of which no answer is kept; 0 when there is none, or somebody reads.
SELECT ledger.drop_empty_observation_months($1::timestamptz) AS months
