-- Remembers how far the summaries are: position $1 of the feed, subscription $2 of round $3.
UPDATE ledger.summary_progress
SET position = $1::bigint, round_at = $2::bigint, rounds = $3::bigint, summarised_at = now()
