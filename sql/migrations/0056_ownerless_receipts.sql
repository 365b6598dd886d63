-- Receipts that no customer sent, and the tokens of erased customers.

CREATE INDEX receipt_of_transaction ON ledger.receipt (app_id) WHERE form = 'transaction_id';
COMMENT ON INDEX ledger.receipt_of_transaction IS
    'Finds the receipts of an app that notifications made, when its server key comes or goes';
