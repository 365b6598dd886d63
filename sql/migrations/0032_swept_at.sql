-- When an answer last spoke for everything about a receipt: refund checks count from then, and histories are read on in time.
ALTER TABLE ledger.poll_schedule ADD COLUMN swept_at timestamptz;
COMMENT ON COLUMN ledger.poll_schedule.swept_at IS
    'When an answer last spoke for everything about the receipt, by our clock: of verifyReceipt, or of the Server API with '
    'the history; null: no such answer is known';
