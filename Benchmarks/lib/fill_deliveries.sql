-- Adds due deliveries :first to :last to the app :app, each with its purchase and owner. Deliveries that follow each other
-- are of customers far apart, each of whom has some five.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
-- The rows refer to each other as they should, and nothing is counted or kept on the way.
SET session_replication_role = replica;
CREATE TEMPORARY TABLE filled AS
SELECT a.app_id, n.number, n.number * 7919 % GREATEST(1, (:last - :first + 1) / 5) + 1 AS place,
       nextval(pg_get_serial_sequence('ledger.purchase', 'purchase_id')) AS purchase_id, 't' || n.number AS transaction_id
FROM ledger.app a CROSS JOIN generate_series(:first::bigint, :last::bigint) AS n(number)
WHERE a.bundle_id = :'app';
CREATE TEMPORARY TABLE buyer AS
SELECT app_id, place, nextval(pg_get_serial_sequence('ledger.customer', 'customer_id')) AS customer_id
FROM (SELECT DISTINCT app_id, place FROM filled ORDER BY place) p;
INSERT INTO ledger.customer (customer_id, app_id, name) OVERRIDING SYSTEM VALUE
SELECT customer_id, app_id, 'd' || lpad((:first + place)::text, 7, '0') FROM buyer;
INSERT INTO ledger.purchase (
    purchase_id, app_id, environment, original_transaction_id, product_id, transaction_id, transaction_ids, quantity,
    purchased_at, facts, as_of, checked_at, first_recorded_at, recorded_at, facts_recorded_at, version)
    OVERRIDING SYSTEM VALUE
SELECT purchase_id, app_id, 'Production', transaction_id, :'product', transaction_id, ARRAY[transaction_id], 1,
       now() + number * interval '1 microsecond', '{}', now(), now(), now(), now(), now(), 1
FROM filled;
INSERT INTO ledger.ownership (purchase_id, customer_id, cause, valid, known)
SELECT f.purchase_id, b.customer_id, 'upload', tstzrange(NULL, NULL), tstzrange(now(), NULL)
FROM filled f JOIN buyer b USING (app_id, place);
INSERT INTO ledger.delivery (
    app_id, environment, customer_id, product_id, kind, turn, reason, purchase_id, transaction_id,
    original_transaction_id, position)
SELECT f.app_id, 'Production', b.customer_id, :'product', 'non_consumable', 1, 'purchase', f.purchase_id,
       f.transaction_id, f.transaction_id, (SELECT q.position FROM ledger.delivery_queue q) + row_number() OVER (ORDER BY f.number)
FROM filled f JOIN buyer b USING (app_id, place)
ORDER BY f.number;
INSERT INTO ledger.due_delivery (app_id, environment, position, delivery_id, changed_since)
SELECT d.app_id, d.environment, d.position, d.delivery_id, false
FROM filled f JOIN ledger.delivery d USING (purchase_id) ORDER BY d.position;
UPDATE ledger.delivery_queue SET position = (SELECT max(position) FROM ledger.delivery);
-- A table that is vacuumed while it is empty counts as empty for a while, so only these are.
VACUUM (ANALYZE) ledger.customer, ledger.purchase, ledger.ownership, ledger.delivery, ledger.due_delivery;
CHECKPOINT;
