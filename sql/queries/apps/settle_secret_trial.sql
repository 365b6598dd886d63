-- Records the verdict of a trial: app $1, environment $2, the sealed secret $3 that was tried (another one now: nothing
-- changes), when it began $4, verdict $5 (accepted, refused, unanswered, untold), whether it proves the present secret
-- $6, seconds between trials $7. A trial without an answer changes no pause, and the next one waits twice as long, up to
-- sixteen times. Where no receipt can tell, a pause ends, and the refusals stay until one can.
UPDATE ledger.secret_trial t
SET refused_at = CASE WHEN $5::text = 'untold' THEN COALESCE(t.refused_at, now())
                      WHEN $5::text = 'unanswered' OR t.refused_at > $4::timestamptz THEN t.refused_at END,
    refused_receipts = CASE WHEN $5::text IN ('untold', 'unanswered') OR t.refused_at > $4::timestamptz
                            THEN t.refused_receipts ELSE '{}' END,
    paused_since = CASE $5::text
        WHEN 'refused' THEN COALESCE(t.paused_since, now()) WHEN 'unanswered' THEN t.paused_since END,
    proved_at = CASE WHEN $6::boolean THEN COALESCE(t.proved_at, now()) ELSE t.proved_at END,
    is_untold = CASE $5::text WHEN 'unanswered' THEN t.is_untold ELSE $5::text = 'untold' END,
    unanswered = CASE $5::text WHEN 'unanswered' THEN LEAST(t.unanswered + 1, 100) ELSE 0 END,
    try_at = CASE $5::text
        WHEN 'unanswered' THEN now() + make_interval(secs => $7::float8 * (1 << LEAST(t.unanswered + 1, 4))) ELSE t.try_at END
FROM ledger.app a
WHERE t.app_id = $1::int AND t.environment = $2::text::ledger.environment
  AND a.app_id = t.app_id AND a.sealed_secret IS NOT DISTINCT FROM $3::bytea
