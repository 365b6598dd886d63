-- Takes products out of the catalog of app $1 that are not among $2.
DELETE FROM ledger.product WHERE app_id = $1::int AND product_id <> ALL ($2::text[])
