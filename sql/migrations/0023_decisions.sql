-- What people decide about customers is kept with who decided it and why, until one of those it is about is erased.

ALTER TABLE ledger.audit ADD COLUMN decided_about bigint[];
COMMENT ON COLUMN ledger.audit.decided_about IS
    'Every customer whom a decision by hand is about, by number: its reason may speak of each; null: no decision about customers';
-- The audit holds a row per upload, of which an erasure reads none.
CREATE INDEX audit_decided_about ON ledger.audit USING gin (decided_about) WHERE decided_about IS NOT NULL;

CREATE OR REPLACE VIEW perennial.audit_log AS
SELECT t.audit_id, t.happened_at, COALESCE('key ' || t.key_id, 'user ' || t.os_user) AS actor, t.action, a.bundle_id,
       c.name AS customer, t.receipt_id, t.detail,
       CASE WHEN t.decided_about IS NOT NULL THEN
           ARRAY(SELECT d.name FROM ledger.customer d WHERE d.customer_id = ANY(t.decided_about) ORDER BY d.name)
       END AS decided_about
FROM ledger.audit t
LEFT JOIN ledger.app a ON a.app_id = t.app_id
LEFT JOIN ledger.customer c ON c.customer_id = t.customer_id;
COMMENT ON COLUMN perennial.audit_log.decided_about IS
    'Every customer whom a decision by hand is about; detail says who decided and why, until one of them is erased';
