-- Settlement: updates receipts; $3 to $21 are the columns named below, nulls keep the present value. $1 apps, $2 how
-- many of their once-verified receipts Apple vouched for again. latest_receipt is cleared if its answer omitted what
-- the receipt polls (forgets_latest), so that the original one is used again.
WITH verified AS (
    INSERT INTO ledger.verified_minute AS v (app_id, minute, backend, answers)
    SELECT n.app_id, date_trunc('minute', clock_timestamp()), pg_backend_pid(), n.answers
    FROM unnest($1::int[], $2::bigint[]) AS n(app_id, answers)
    ON CONFLICT (app_id, minute, backend) DO UPDATE SET answers = v.answers + EXCLUDED.answers
)
UPDATE ledger.receipt r
SET environment = COALESCE(n.environment::ledger.environment, r.environment),
    receipt_created_at = GREATEST(n.receipt_created_at, r.receipt_created_at),
    latest_receipt = CASE WHEN NOT n.forgets_latest THEN COALESCE(n.latest_receipt, r.latest_receipt) END,
    outcome = COALESCE(n.outcome::ledger.outcome, r.outcome),
    reason = CASE WHEN n.outcome IS NULL THEN r.reason ELSE n.reason END, asked_at = n.asked_at,
    verified_at = COALESCE(n.verified_at, r.verified_at),
    first_verified_at = COALESCE(r.first_verified_at, r.verified_at, n.verified_at),
    rejections = n.rejections, rejected_since = n.rejected_since, equal_empty_answers = n.equal_empty_answers,
    observation_id = n.observation_id, observed_at = n.observed_at, meaning = n.meaning,
    settled_token = n.settled_token, transaction_id = COALESCE(r.transaction_id, n.transaction_id),
    vouched = r.vouched OR n.vouched, history_revision = COALESCE(n.history_revision, r.history_revision)
FROM unnest($3::bigint[], $4::text[], $5::timestamptz[], $6::bytea[], $7::text[], $8::text[], $9::timestamptz[],
            $10::timestamptz[], $11::smallint[], $12::timestamptz[], $13::smallint[], $14::bigint[], $15::timestamptz[],
            $16::bytea[], $17::bigint[], $18::boolean[], $19::text[], $20::boolean[], $21::text[])
    AS n(receipt_id, environment, receipt_created_at, latest_receipt, outcome, reason, asked_at, verified_at, rejections,
         rejected_since, equal_empty_answers, observation_id, observed_at, meaning, settled_token, forgets_latest, transaction_id, vouched,
         history_revision)
WHERE r.receipt_id = n.receipt_id
