-- Takes products out of the catalog of app $1 that are not among $2; that they were in it is remembered.
UPDATE ledger.product SET removed_at = now()
WHERE app_id = $1::int AND product_id <> ALL ($2::text[]) AND removed_at IS NULL
