-- Deletes the products of app $1 that are not among $2 from the catalog.
DELETE FROM ledger.product WHERE app_id = $1::int AND product_id <> ALL ($2::text[])
