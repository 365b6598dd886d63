-- Returns what is judged of the notifications of each app with sweep = auto.
SELECT a.bundle_id, t.factor, t.reported, t.missed, t.lower_bound, t.last_notification_at, t.silence_longest_ms, t.is_silent,
       now() AS now
FROM ledger.sweep_trust t JOIN ledger.app a USING (app_id)
WHERE a.sweep = 'auto' AND a.removed_at IS NULL
ORDER BY a.bundle_id
