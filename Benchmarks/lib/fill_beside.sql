-- Adds :others receipts that are asked about some other day, with what a check might come across: copies of receipts that
-- are there, of the same customers, with short bytes, and of each subscription the newest period and span.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET work_mem = '256MB';
SET maintenance_work_mem = '1GB';
-- Copies refer to each other as the originals do, and nothing is counted or kept on the way.
SET session_replication_role = replica;
SET client_min_messages = warning;
CREATE SCHEMA bench;

CREATE TABLE bench.receipt AS
SELECT r.* FROM ledger.receipt r
WHERE EXISTS (SELECT FROM ledger.poll_schedule s WHERE s.receipt_id = r.receipt_id)
  AND EXISTS (SELECT FROM ledger.subscription s WHERE s.polled_by = r.receipt_id)
ORDER BY r.receipt_id LIMIT 10000;
CREATE TABLE bench.poll_schedule AS
SELECT s.* FROM ledger.poll_schedule s WHERE s.receipt_id IN (SELECT receipt_id FROM bench.receipt);
CREATE TABLE bench.upload AS
SELECT u.* FROM ledger.upload u WHERE u.receipt_id IN (SELECT receipt_id FROM bench.receipt);
CREATE TABLE bench.subscription AS
SELECT s.* FROM ledger.subscription s WHERE s.polled_by IN (SELECT receipt_id FROM bench.receipt);
CREATE TABLE bench.receipt_subscription AS
SELECT l.* FROM ledger.receipt_subscription l
JOIN bench.subscription USING (subscription_id) JOIN bench.receipt r ON r.receipt_id = l.receipt_id;
CREATE TABLE bench.period AS
SELECT DISTINCT ON (p.subscription_id) p.* FROM ledger.period p
JOIN bench.subscription USING (subscription_id) ORDER BY p.subscription_id, p.purchased_at DESC;
CREATE TABLE bench.subscription_span AS
SELECT DISTINCT ON (s.subscription_id) s.* FROM ledger.subscription_span s
JOIN bench.subscription USING (subscription_id) WHERE upper_inf(s.known) ORDER BY s.subscription_id, s.valid DESC;

-- Rows go in faster without the indexes that are not needed to find them; they are made again at the end.
CREATE TABLE bench.put_back (place bigint GENERATED ALWAYS AS IDENTITY, statement text NOT NULL);
DO $$
DECLARE
    tables CONSTANT regclass[] := ARRAY(
        SELECT ('ledger.' || relname)::regclass FROM pg_class
        WHERE relnamespace = 'bench'::regnamespace AND relkind = 'r' AND relname <> 'put_back');
    gone text;
BEGIN
    FOR gone IN
        WITH kept AS (
            INSERT INTO bench.put_back (statement)
            SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
            FROM pg_constraint c WHERE c.conrelid = ANY (tables) AND c.contype IN ('u', 'x')
            UNION ALL
            SELECT pg_get_indexdef(i.indexrelid)
            FROM pg_index i
            WHERE i.indrelid = ANY (tables)
              AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
        )
        SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname)
        FROM pg_constraint c WHERE c.conrelid = ANY (tables) AND c.contype IN ('u', 'x')
        UNION ALL
        SELECT format('DROP INDEX %s', i.indexrelid::regclass)
        FROM pg_index i
        WHERE i.indrelid = ANY (tables) AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    LOOP
        EXECUTE gone;
    END LOOP;
END $$;

-- The rows of a table once for each copy; the columns that `changed` names have its expressions, in which t is the original
-- and k the number of the copy.
CREATE PROCEDURE bench.copy(name text, changed jsonb, copies int) LANGUAGE plpgsql AS $$
DECLARE
    ids CONSTANT jsonb := (
        SELECT jsonb_object_agg(id, format('t.%s + k * 10000000', id))
        FROM unnest(ARRAY['receipt_id', 'subscription_id', 'period_id']) id);
BEGIN
    EXECUTE (
        SELECT format(
            'INSERT INTO ledger.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM generate_series(1::bigint, $1) k, bench.%I t',
            name, string_agg(quote_ident(a.attname), ', '),
            string_agg(COALESCE((ids || changed) ->> a.attname, 't.' || quote_ident(a.attname)), ', '), name)
        FROM pg_attribute a
        WHERE a.attrelid = ('ledger.' || name)::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
    USING copies::bigint;
END $$;

SELECT GREATEST(1, :others / count(*))::int AS copies FROM bench.receipt \gset
CALL bench.copy(
    'receipt', '{"digest": "sha256(t.digest || int8send(k))", "data": "substr(t.data, 1, 32)", "latest_receipt": "NULL"}',
    :copies);
CALL bench.copy('upload', '{}', :copies);
CALL bench.copy(
    'poll_schedule', '{"due_at": "now() + interval ''1 day'' + random() * interval ''29 days''", "lane": "''sweep''::ledger.lane"}', :copies);
CALL bench.copy(
    'subscription',
    '{"original_transaction_id": "t.original_transaction_id || ''-'' || k",
      "polled_by": "t.polled_by + k * 10000000"}',
    :copies);
CALL bench.copy('receipt_subscription', '{}', :copies);
CALL bench.copy('period', '{}', :copies);
CALL bench.copy('subscription_span', '{}', :copies);

SELECT statement FROM bench.put_back ORDER BY place \gexec
DROP SCHEMA bench CASCADE;
VACUUM (ANALYZE);
CHECKPOINT;
