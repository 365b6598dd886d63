-- Records that the grants of app $1 changed at $2, which outdates the stored entitlements of its customers.
UPDATE ledger.app SET catalog_changed_at = $2::timestamptz WHERE app_id = $1::int
