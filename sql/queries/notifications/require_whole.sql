-- Has the next checks of receipts ($1) read everything that Apple knows.
UPDATE ledger.receipt SET reads_whole = true WHERE receipt_id = ANY($1::bigint[]) AND NOT reads_whole
