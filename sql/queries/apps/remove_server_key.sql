-- Takes the server key of the app with bundle $1 away, and ends the pauses because Apple refused it.
WITH removed AS (
    DELETE FROM ledger.server_key k USING ledger.app a
    WHERE a.app_id = k.app_id AND a.bundle_id = $1::text
    RETURNING k.app_id
), resumed AS (
    UPDATE ledger.call_budget b SET paused_until = '-infinity', refused_because = NULL
    FROM removed r WHERE b.app_id = r.app_id AND b.refused_because IS NOT NULL
)
SELECT r.app_id FROM removed r
