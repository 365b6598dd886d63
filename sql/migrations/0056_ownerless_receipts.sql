-- Receipts that no customer sent, the tokens of erased customers, and since when products give their units.

CREATE INDEX receipt_of_transaction ON ledger.receipt (app_id) WHERE form = 'transaction_id';
COMMENT ON INDEX ledger.receipt_of_transaction IS
    'Finds the receipts of an app that notifications made, when its server key comes or goes';

CREATE TABLE ledger.erased_token (
    app_id  int NOT NULL REFERENCES ledger.app,
    digest  bytea NOT NULL,
    PRIMARY KEY (app_id, digest),
    CONSTRAINT erased_token_digest_is_sha256 CHECK (length(digest) = 32)
);
COMMENT ON TABLE ledger.erased_token IS
    'What must not be stored again: the names and account tokens of erased customers, as SHA-256 of their lower case. It counts while '
    'no customer has that name';
COMMENT ON COLUMN ledger.erased_token.app_id IS 'The app';
COMMENT ON COLUMN ledger.erased_token.digest IS 'SHA-256 of the name or token in lower case';

-- What was delivered is compared with the catalog, unless that changed since.
ALTER TABLE ledger.product ADD COLUMN units_since timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN ledger.product.units_since IS 'Since when it gives these units of this credit';
