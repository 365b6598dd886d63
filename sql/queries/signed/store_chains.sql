-- Stores headers of signed texts that are not known yet: $1 headers, $2 their digests, each once and in order of digest.
INSERT INTO ledger.signer_chain (header, digest)
SELECT n.header, n.digest FROM unnest($1::text[], $2::bytea[]) AS n(header, digest)
WHERE NOT EXISTS (SELECT FROM ledger.signer_chain c WHERE c.digest = n.digest)
ON CONFLICT (digest) DO NOTHING
