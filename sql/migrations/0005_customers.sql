-- Customers, the receipts that they uploaded, and what they own.

-- The database does not check the app of a customer, as with ledger.receipt.
CREATE TABLE ledger.customer (
    customer_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id       int NOT NULL,
    name         text NOT NULL,
    merged_into  bigint REFERENCES ledger.customer,
    created_at   timestamptz NOT NULL DEFAULT now(),
    erased_at    timestamptz,
    CONSTRAINT customer_name_unique UNIQUE (app_id, name),
    CONSTRAINT customer_name_is_short CHECK (name <> '' AND length(name) <= 255),
    CONSTRAINT customer_is_not_merged_into_itself CHECK (merged_into <> customer_id)
);
-- The admin page searches customers by the beginning of the name.
CREATE INDEX customer_name_prefix ON ledger.customer (app_id, name text_pattern_ops);
CREATE INDEX customer_merged_into ON ledger.customer (merged_into) WHERE merged_into IS NOT NULL;
COMMENT ON TABLE ledger.customer IS 'Customers: the operator''s own user ids in one app';
COMMENT ON COLUMN ledger.customer.merged_into IS 'The customer that this name means now; that one is not merged itself';
COMMENT ON COLUMN ledger.customer.erased_at IS 'When the customer''s data were erased';

CREATE TABLE ledger.customer_merge (
    customer_id  bigint NOT NULL REFERENCES ledger.customer,
    into_id      bigint NOT NULL REFERENCES ledger.customer,
    applies      tstzrange NOT NULL,
    CONSTRAINT customer_merge_says_one_thing EXCLUDE USING gist (customer_id WITH =, applies WITH &&)
);
COMMENT ON TABLE ledger.customer_merge IS
    'When a name meant another customer; outside of these times it has things of its own';

CREATE FUNCTION ledger.customer_at(customer_id bigint, at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        (SELECT m.into_id FROM ledger.customer_merge m
         WHERE m.customer_id = customer_at.customer_id AND m.applies @> customer_at.at),
        customer_at.customer_id)
$$;
COMMENT ON FUNCTION ledger.customer_at IS 'The customer whose things a customer''s name meant at an instant';

CREATE TABLE ledger.upload (
    receipt_id        bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    customer_id       bigint NOT NULL REFERENCES ledger.customer,
    uploaded_as        bigint REFERENCES ledger.customer,
    storefront        text,
    price_milliunits  bigint,
    currency          text,
    uploaded_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    imported          boolean NOT NULL,
    settled           boolean NOT NULL DEFAULT false,
    PRIMARY KEY (receipt_id, customer_id)
);
CREATE INDEX upload_of_customer ON ledger.upload (customer_id);
CREATE INDEX upload_uploaded_as ON ledger.upload (uploaded_as) WHERE uploaded_as IS NOT NULL;
COMMENT ON TABLE ledger.upload IS 'Which customer sent which receipt: the newest upload of each pair';
COMMENT ON COLUMN ledger.upload.uploaded_as IS
    'The customer whose upload it was before the name was merged, so that a merge can be undone; null: it never moved';
COMMENT ON COLUMN ledger.upload.storefront IS
    'The storefront that the device saw, with the price below; ledger.stated_price has each';
COMMENT ON COLUMN ledger.upload.price_milliunits IS 'In thousandths of currency';
COMMENT ON COLUMN ledger.upload.imported IS
    'Whether an import brought it; an import never takes a live subscription from its owner';
COMMENT ON COLUMN ledger.upload.settled IS 'Whether a settlement has decided about ownership since the upload';

CREATE TABLE ledger.ownership (
    ownership_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    customer_id      bigint NOT NULL REFERENCES ledger.customer,
    cause            text,
    valid            tstzrange NOT NULL,
    known            tstzrange NOT NULL,
    CONSTRAINT ownership_of_one_thing CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT ownership_cause_known
        CHECK (cause IN ('upload', 'import', 'token', 'proof', 'merge', 'split', 'assignment')),
    CONSTRAINT ownership_of_subscription_says_one_thing EXCLUDE USING gist
        (subscription_id WITH =, valid WITH &&, known WITH &&) WHERE (subscription_id IS NOT NULL),
    CONSTRAINT ownership_of_purchase_says_one_thing EXCLUDE USING gist
        (purchase_id WITH =, valid WITH &&, known WITH &&) WHERE (purchase_id IS NOT NULL)
);
CREATE INDEX ownership_of_customer ON ledger.ownership (customer_id);
COMMENT ON TABLE ledger.ownership IS
    'Which customer owned which subscription or one-time purchase. A change closes known and adds a row; a closed '
    'row never changes';
COMMENT ON COLUMN ledger.ownership.cause IS
    'Why the customer owns it: an upload or an import of theirs, the app_account_token in it, a proof of their order, a '
    'merge, its undoing (split), or a manual assignment; null: unknown';
COMMENT ON COLUMN ledger.ownership.valid IS 'When the customer owned it; half-open';
COMMENT ON COLUMN ledger.ownership.known IS 'When Perennial recorded it, by our clock; half-open';
