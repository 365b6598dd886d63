-- Stores the progress of the summaries: position $1 of the feed, subscription $2 of round $3, at the prices of $4.
UPDATE ledger.summary_progress
SET position = $1::bigint, round_at = $2::bigint, rounds = $3::bigint, price_mark = $4::text::uuid, summarised_at = now()
