-- Returns the promotional offers in the present catalog of app $1.
SELECT o.product_id, o.offer_id, o.audience, lower(o.valid) AS starts, upper(o.valid) AS ends, o.once
FROM ledger.product_offer o JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text ORDER BY o.product_id COLLATE "C", o.offer_id COLLATE "C"
