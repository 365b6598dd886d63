-- Counts receipts that were refused because they name another app than $1: the bundle ids $2, each so often $3. Of an app
-- $4 ids are kept: where there is no room, a new one takes the place of the rarest and counts on from it.
WITH named AS MATERIALIZED (
    SELECT n.bundle_id, n.receipts
    FROM unnest($2::text[], $3::bigint[]) AS n(bundle_id, receipts) ORDER BY n.bundle_id
), known AS (
    UPDATE ledger.refused_bundle b SET receipts = b.receipts + n.receipts, last_at = now()
    FROM named n WHERE b.app_id = $1::int AND b.bundle_id = n.bundle_id
    RETURNING b.bundle_id
), new AS MATERIALIZED (
    SELECT n.*, row_number() OVER (ORDER BY n.receipts DESC, n.bundle_id) AS place,
           $4::int - (SELECT count(*) FROM ledger.refused_bundle b WHERE b.app_id = $1::int) AS room
    FROM named n WHERE n.bundle_id NOT IN (SELECT k.bundle_id FROM known k)
), rare AS MATERIALIZED (
    SELECT b.bundle_id, row_number() OVER (ORDER BY b.receipts, b.last_at) AS place
    FROM ledger.refused_bundle b
    WHERE b.app_id = $1::int AND b.bundle_id NOT IN (SELECT k.bundle_id FROM known k)
), replaced AS (
    UPDATE ledger.refused_bundle b
    SET bundle_id = n.bundle_id, receipts = b.receipts + n.receipts, last_at = now()
    FROM new n JOIN rare r ON r.place = n.place - GREATEST(0, n.room)
    WHERE n.place > n.room AND b.app_id = $1::int AND b.bundle_id = r.bundle_id
)
INSERT INTO ledger.refused_bundle AS b (app_id, bundle_id, receipts)
SELECT $1::int, n.bundle_id, n.receipts FROM new n WHERE n.place <= n.room
ON CONFLICT (app_id, bundle_id) DO UPDATE SET receipts = b.receipts + EXCLUDED.receipts, last_at = now()
