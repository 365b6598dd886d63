-- Returns the headers with the numbers $1.
SELECT c.chain_id, c.header FROM ledger.signer_chain c WHERE c.chain_id = ANY($1::int[])
