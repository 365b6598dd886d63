-- Returns reserved calls that were not made to the budget: apps $1, calls $2.
UPDATE ledger.app_budget b SET tokens = LEAST(b.burst, b.tokens + n.calls)
FROM unnest($1::int[], $2::int[]) AS n(app_id, calls)
WHERE b.app_id = n.app_id AND b.rate > 0
