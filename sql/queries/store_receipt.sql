-- Keeps one upload: app $1, customer $2, digest $3, bytes $4, imported $5, storefront $6, price $7, currency $8.
-- A receipt that is there already is not stored again; a new uploader or an unscheduled receipt makes it due:
-- at once when imported, else in five seconds, because who uploads asks Apple right away.
WITH the_customer AS (
    INSERT INTO ledger.customer (app_id, name) VALUES ($1::int, $2::text)
    ON CONFLICT (app_id, name) DO UPDATE SET name = EXCLUDED.name
    RETURNING customer_id
), the_receipt AS (
    INSERT INTO ledger.receipt AS r (app_id, digest, data) VALUES ($1::int, $3::bytea, $4::bytea)
    ON CONFLICT (app_id, digest) DO UPDATE SET digest = EXCLUDED.digest
    RETURNING r.receipt_id, r.app_id, r.verified_at IS NULL AS unverified, r.xmax = 0 AS is_new
), the_upload AS (
    INSERT INTO ledger.upload AS u (receipt_id, customer_id, imported, storefront, price_milliunits, currency)
    SELECT receipt_id, customer_id, $5::boolean, $6::text, $7::bigint, $8::text FROM the_receipt, the_customer
    ON CONFLICT (receipt_id, customer_id) DO UPDATE
    SET settled = false, uploaded_at = clock_timestamp(), imported = EXCLUDED.imported
    WHERE NOT EXCLUDED.imported
    RETURNING receipt_id, u.xmax = 0 AS is_new
), due AS (
    INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for)
    SELECT receipt_id, app_id, CASE WHEN unverified THEN 0 ELSE 1 END, clock.at, clock.at
    FROM the_receipt, LATERAL (
        SELECT clock_timestamp() + CASE WHEN $5::boolean THEN interval '0' ELSE interval '5 s' END AS at) clock
    WHERE is_new OR EXISTS (SELECT FROM the_upload)
    ON CONFLICT (receipt_id) DO UPDATE
    SET due_at = EXCLUDED.due_at, scheduled_for = EXCLUDED.scheduled_for
    WHERE s.leased_by IS NULL AND s.due_at > EXCLUDED.due_at
    RETURNING receipt_id
)
SELECT r.receipt_id, c.customer_id, r.is_new FROM the_receipt r, the_customer c
