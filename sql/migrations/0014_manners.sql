-- How Apple is asked: a wish for a check that a lease may not swallow.
ALTER TABLE ledger.poll_schedule ADD COLUMN want_at timestamptz;
COMMENT ON COLUMN ledger.poll_schedule.want_at IS
    'By when somebody wanted the next check while the receipt was leased; honoured when the lease is given back';
