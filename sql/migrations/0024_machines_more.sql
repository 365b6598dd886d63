-- Many machines: what a receipt holds is found without reading what all receipts hold.
CREATE INDEX receipt_subscription_of_receipt ON ledger.receipt_subscription (receipt_id);
CREATE INDEX receipt_purchase_of_receipt ON ledger.receipt_purchase (receipt_id);
