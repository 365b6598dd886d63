-- Locks the catalog of app $1, so that one catalog is applied at a time, and outdates the stored entitlements of the
-- app's customers; returns the app's key and the instant of the change, which is later than every earlier one.
UPDATE ledger.app
SET catalog_changed_at = GREATEST(clock_timestamp(), catalog_changed_at + interval '1 microsecond')
WHERE bundle_id = $1::text
RETURNING app_id, catalog_changed_at AS recorded_at
