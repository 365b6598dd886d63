-- Polling: has receipts ($1) that took over go on with the follow-ups ($2) of those before, in a minute; the rows are locked.
UPDATE ledger.poll_schedule s
SET follow_ups = GREATEST(s.follow_ups, m.follow_ups), fingerprint = NULL,
    want_at = CASE WHEN s.leased_by IS NOT NULL THEN LEAST(s.want_at, now() + interval '1 minute') ELSE s.want_at END,
    due_at = CASE WHEN s.leased_by IS NULL THEN LEAST(s.due_at, now() + interval '1 minute') ELSE s.due_at END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, now() + interval '1 minute')
                         ELSE s.scheduled_for END
FROM (SELECT n.receipt_id, max(n.follow_ups)::smallint AS follow_ups
      FROM unnest($1::bigint[], $2::int[]) AS n(receipt_id, follow_ups) GROUP BY n.receipt_id) m
WHERE s.receipt_id = m.receipt_id
