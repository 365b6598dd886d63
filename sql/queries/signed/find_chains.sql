-- Returns the numbers of headers of signed texts, by their digests $1.
SELECT c.chain_id, c.header FROM ledger.signer_chain c WHERE c.digest = ANY($1::bytea[])
