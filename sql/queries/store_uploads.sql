-- Intake, step 5: keeps uploads ($1 receipts, $2 apps, $3 customers, $4 imported, $5 storefronts, $6 prices, $7 currencies).
-- An upload makes its receipt due: at once when imported, else in five seconds, because who uploads asks Apple right
-- away. An import that brings nothing new does not.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), given AS (
    SELECT DISTINCT ON (n.receipt_id, c.customer_id) n.*, c.customer_id
    FROM unnest($1::bigint[], $2::int[], $3::text[], $4::boolean[], $5::text[], $6::bigint[], $7::text[]) WITH ORDINALITY
        AS n(receipt_id, app_id, customer, imported, storefront, price_milliunits, currency, place)
    JOIN ledger.customer c ON c.app_id = n.app_id AND c.name = n.customer
    ORDER BY n.receipt_id, c.customer_id, n.imported, n.place DESC
), uploaded AS (
    INSERT INTO ledger.upload AS u
        (receipt_id, customer_id, uploaded_at, imported, storefront, price_milliunits, currency)
    SELECT g.receipt_id, g.customer_id, clock.at + g.place * interval '1 microsecond', g.imported, g.storefront,
           g.price_milliunits, g.currency
    FROM given g CROSS JOIN clock
    ORDER BY g.receipt_id, g.customer_id
    ON CONFLICT (receipt_id, customer_id) DO UPDATE
    SET settled = false, uploaded_at = EXCLUDED.uploaded_at, imported = EXCLUDED.imported,
        storefront = COALESCE(EXCLUDED.storefront, u.storefront),
        price_milliunits = COALESCE(EXCLUDED.price_milliunits, u.price_milliunits),
        currency = COALESCE(EXCLUDED.currency, u.currency)
    WHERE NOT EXCLUDED.imported
    RETURNING u.receipt_id, u.imported
), due AS (
    SELECT receipt_id, bool_and(imported) AS imported,
           clock.at + CASE WHEN bool_or(imported) THEN interval '0' ELSE interval '5 s' END AS at
    FROM uploaded CROSS JOIN clock GROUP BY receipt_id, clock.at
)
INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT r.receipt_id, r.app_id, CASE WHEN r.verified_at IS NOT NULL THEN 1 WHEN due.imported THEN 3 ELSE 0 END, due.at, due.at
FROM due JOIN ledger.receipt r USING (receipt_id)
ORDER BY r.receipt_id
ON CONFLICT (receipt_id) DO UPDATE
SET due_at = CASE WHEN s.leased_by IS NULL THEN LEAST(s.due_at, EXCLUDED.due_at) ELSE s.due_at END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, EXCLUDED.scheduled_for) ELSE s.scheduled_for END,
    lane = CASE WHEN s.leased_by IS NULL THEN LEAST(s.lane, EXCLUDED.lane) ELSE s.lane END,
    fingerprint = NULL
