-- Prune: gives back the disk of the months before $1 of which no answer is kept; how many they were.
SELECT ledger.drop_empty_observation_months($1::timestamptz) AS months
