-- Queries in SQL: psql "$DATABASE_URL" -v app=com.example.app -v customer=c1 -f docs/examples/entitled.sql
-- The role perennial_report may run it.

-- The customer's entitlements now.
SELECT entitlement, granted, until, state, reason, basis, checked_at
FROM perennial.entitlement_now WHERE bundle_id = :'app' AND customer = :'customer';

-- One entitlement a week ago, as known then; always exactly one row.
SELECT granted, until, state, reason
FROM perennial.entitled_at(:'app', :'customer', 'monthly', now() - interval '7 days', now() - interval '7 days');

-- The customer's events, in order.
SELECT position, kind, product_id, occurred_at
FROM perennial.event_log WHERE bundle_id = :'app' AND customer = :'customer' ORDER BY position;
