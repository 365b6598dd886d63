-- Begins to judge the notifications of apps with sweep = auto, and forgets those of others.
WITH others AS (
    DELETE FROM ledger.sweep_trust t USING ledger.app a
    WHERE a.app_id = t.app_id AND (a.sweep <> 'auto' OR a.removed_at IS NOT NULL)
)
INSERT INTO ledger.sweep_trust (app_id, since, all_swept_since, counted_until)
SELECT a.app_id, now(), now(), now() FROM ledger.app a WHERE a.sweep = 'auto' AND a.removed_at IS NULL
ON CONFLICT (app_id) DO NOTHING
