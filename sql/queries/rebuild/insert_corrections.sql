-- Rebuild: records corrections; the parameters $1 to $7 are the columns named below.
INSERT INTO ledger.correction (subscription_id, purchase_id, version, fact, stored, rebuilt, recorded_at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
