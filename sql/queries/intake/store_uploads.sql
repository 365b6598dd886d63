-- Intake: stores uploads ($1 receipts, $2 customers, $3 imported, $4 storefronts, $5 prices, $6 currencies, $7 expiries
-- as far as they are known, $8 whether the receipt says that it is of the sandbox).
-- A device that sends a receipt for an order names no customer; then nothing but the receipt is stored here. An upload
-- makes its receipt due: at once when imported, in the order of ledger.import_priority, else in five seconds, because
-- the uploading process asks Apple right away. An import of a known upload does not; if it says a storefront or price
-- that this upload never said, that is kept, and holds from now on. A receipt in quarantine stays there, because it is
-- asked about alone.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), given AS MATERIALIZED (
    SELECT n.receipt_id, n.customer_id, bool_and(n.imported) AS imported,
           (array_agg(n.storefront ORDER BY n.place DESC) FILTER (WHERE n.storefront IS NOT NULL))[1] AS storefront,
           (array_agg(n.price_milliunits ORDER BY n.place DESC) FILTER (WHERE n.currency IS NOT NULL))[1]
               AS price_milliunits,
           (array_agg(n.currency ORDER BY n.place DESC) FILTER (WHERE n.currency IS NOT NULL))[1] AS currency,
           max(n.expires_at) AS expires_at, bool_or(n.is_sandbox) AS is_sandbox, max(n.place) AS place
    FROM unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::text[], $5::bigint[], $6::text[], $7::timestamptz[], $8::boolean[])
        WITH ORDINALITY
        AS n(receipt_id, customer_id, imported, storefront, price_milliunits, currency, expires_at, is_sandbox, place)
    GROUP BY n.receipt_id, n.customer_id
), uploaded AS (
    INSERT INTO ledger.upload AS u
        (receipt_id, customer_id, uploaded_at, imported, storefront, price_milliunits, currency)
    SELECT g.receipt_id, g.customer_id, clock.at + g.place * interval '1 microsecond', g.imported, g.storefront,
           g.price_milliunits, g.currency
    FROM given g CROSS JOIN clock
    WHERE g.customer_id IS NOT NULL
    ORDER BY g.receipt_id, g.customer_id
    ON CONFLICT (receipt_id, customer_id) DO UPDATE
    SET settled = u.settled AND EXCLUDED.imported, imported = u.imported AND EXCLUDED.imported,
        uploaded_at = CASE WHEN EXCLUDED.imported THEN u.uploaded_at ELSE EXCLUDED.uploaded_at END,
        storefront = COALESCE(EXCLUDED.storefront, u.storefront),
        price_milliunits = COALESCE(EXCLUDED.price_milliunits, u.price_milliunits),
        currency = COALESCE(EXCLUDED.currency, u.currency)
    WHERE NOT EXCLUDED.imported
       OR (num_nonnulls(EXCLUDED.storefront, EXCLUDED.currency) > 0 AND NOT EXISTS (
           SELECT FROM ledger.stated_price w
           WHERE w.receipt_id = u.receipt_id AND w.customer_id = u.customer_id
             AND COALESCE(w.storefront = EXCLUDED.storefront, EXCLUDED.storefront IS NULL)
             AND COALESCE((w.price_milliunits, w.currency) = (EXCLUDED.price_milliunits, EXCLUDED.currency),
                          EXCLUDED.currency IS NULL)))
    RETURNING u.receipt_id, u.imported, u.uploaded_at
), brought AS (
    SELECT u.receipt_id, bool_and(u.imported) AS imported, bool_or(u.imported) AS is_due_now
    FROM (
        SELECT u.receipt_id, u.imported FROM uploaded u CROSS JOIN clock WHERE u.uploaded_at >= clock.at
        UNION ALL
        SELECT g.receipt_id, false FROM given g WHERE g.customer_id IS NULL) u
    GROUP BY u.receipt_id
), due AS (
    SELECT r.receipt_id, r.app_id, r.environment,
           CASE WHEN r.verified_at IS NOT NULL THEN 'expiring'::ledger.lane WHEN b.imported THEN 'import' ELSE 'new' END AS lane,
           clock.at + CASE WHEN b.is_due_now THEN interval '0' ELSE interval '5 s' END AS at
    FROM brought b JOIN ledger.receipt r USING (receipt_id) CROSS JOIN clock
)
INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
SELECT d.receipt_id, d.app_id, d.lane,
       CASE WHEN d.lane = 'import' THEN ledger.import_priority(e.expires_at, clock.at) ELSE d.at END, d.at,
       COALESCE(d.environment = 'Sandbox', e.is_sandbox)
FROM due d CROSS JOIN clock
JOIN (SELECT receipt_id, max(expires_at) AS expires_at, bool_or(is_sandbox) AS is_sandbox FROM given GROUP BY receipt_id) e
    USING (receipt_id)
ORDER BY d.receipt_id
ON CONFLICT (receipt_id) DO UPDATE
SET due_at = CASE WHEN s.leased_by IS NOT NULL THEN s.due_at
                  WHEN s.lane = 'import' AND EXCLUDED.lane < 'import' THEN EXCLUDED.due_at
                  ELSE LEAST(s.due_at, EXCLUDED.due_at) END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, EXCLUDED.scheduled_for) ELSE s.scheduled_for END,
    lane = CASE WHEN s.leased_by IS NULL AND s.lane <> 'quarantine' THEN LEAST(s.lane, EXCLUDED.lane) ELSE s.lane END,
    is_sandbox = EXCLUDED.is_sandbox, fingerprint = NULL
