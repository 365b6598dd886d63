-- Whether any subscription's outage allowance has run out.
SELECT 1 AS found FROM ledger.subscription_span p WHERE upper_inf(p.known) AND p.held_until <= now() LIMIT 1
