-- What Apple's signed texts state and no code reads.

CREATE TABLE ledger.unread_claim (
    app_id                   int NOT NULL REFERENCES ledger.app ON DELETE CASCADE,
    name                     text NOT NULL,
    is_unreadable            boolean NOT NULL,
    texts                    bigint NOT NULL,
    first_seen_at            timestamptz NOT NULL DEFAULT now(),
    last_seen_at             timestamptz NOT NULL DEFAULT now(),
    example                  text,
    original_transaction_id  text,
    PRIMARY KEY (app_id, name)
);
COMMENT ON TABLE ledger.unread_claim IS
    'Claims of Apple''s signed texts that the program does not know, words in claims that it does not know, and values '
    'that are not of the form that it reads; a bounded number for each app';
COMMENT ON COLUMN ledger.unread_claim.name IS
    'The kind of text with the place of the claim; a word that is not known follows an equals sign';
COMMENT ON COLUMN ledger.unread_claim.is_unreadable IS 'Whether the claim is known and its value cannot be read';
COMMENT ON COLUMN ledger.unread_claim.texts IS 'How many texts stated it, each time that one was read';
COMMENT ON COLUMN ledger.unread_claim.example IS 'One such text as Apple signed it; null: none, or erased';
COMMENT ON COLUMN ledger.unread_claim.original_transaction_id IS
    'The subscription or purchase that the example is about, by which an erasure finds it';
