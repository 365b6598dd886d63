-- Settlement: opens or continues incidents of wrong clocks ($1 apps, $2 answers that were not believed, $3 reasons, $4
-- when).
INSERT INTO ledger.incident AS i (app_id, kind, opened_at, recognised_at, last_at, asked, refused, last_reason)
SELECT n.app_id, 'clock', $4::timestamptz, $4::timestamptz, $4::timestamptz, n.answers, n.answers, n.reason
FROM unnest($1::int[], $2::bigint[], $3::text[]) AS n(app_id, answers, reason)
ORDER BY n.app_id
ON CONFLICT (app_id, kind) WHERE closed_at IS NULL DO UPDATE
SET asked = i.asked + EXCLUDED.asked, refused = i.refused + EXCLUDED.refused, last_reason = EXCLUDED.last_reason,
    last_at = GREATEST(i.last_at, EXCLUDED.last_at)
