-- Renewal information speaks for the answer that holds it, also where Apple signed it: statuses are read with each history,
-- so an equal answer states it again.
CREATE OR REPLACE FUNCTION ledger.renewal_as_of(s ledger.subscription, poller ledger.poll_schedule) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN s.renewal_as_of = s.as_of THEN GREATEST(s.as_of, poller.confirmed_as_of) ELSE s.renewal_as_of END
$$;
COMMENT ON FUNCTION ledger.renewal_as_of IS
    'Apple''s clock of a subscription''s renewal row: the newest answer''s, if the newest one in full held the row';
