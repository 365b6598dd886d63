-- Returns the sealed offer key of the app with bundle $1; no row: it has none.
SELECT k.key_id, k.issuer_id, k.sealed_key
FROM ledger.offer_key k JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text
