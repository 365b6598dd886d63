-- Records that migration $1 with digest $2 was applied.
INSERT INTO ledger.migration (name, digest) VALUES ($1::text, $2::bytea)
