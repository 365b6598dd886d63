-- Old signed texts keep every claim but the listed ones, whether a version reads it or not.
COMMENT ON COLUMN ledger.notification.claims IS
    'What is kept of the texts once they are removed: their claims without what verifies a device, certificates and raw receipts';
COMMENT ON COLUMN ledger.observation.reduced IS
    'Whether the signed texts in body are reduced to their claims, without signatures and certificates, because they are old';
