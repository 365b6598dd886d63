-- The account tokens of notifications that wait, so that an erasure finds what is not known to be about a customer yet.
ALTER TABLE ledger.notification ADD COLUMN account_token text;
COMMENT ON COLUMN ledger.notification.account_token IS
    'The app_account_token in its transaction, in lower case, until it is applied; null: none, or applied';
CREATE INDEX notification_account_token ON ledger.notification (app_id, account_token) WHERE account_token IS NOT NULL;
