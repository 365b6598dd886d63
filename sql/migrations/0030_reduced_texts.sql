-- Old answers of the Server API keep the claims of their signed texts alone.
ALTER TABLE ledger.observation ADD COLUMN reduced boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN ledger.observation.reduced IS
    'Whether the signed texts in body are reduced to the claims that facts rest on, because they are old';
