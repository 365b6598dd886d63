-- Old signed texts keep every claim but the listed ones, whether a version reads it or not.
COMMENT ON COLUMN ledger.notification.claims IS
    'What is kept of the texts once they are removed: their claims without what verifies a device, certificates and raw receipts';
COMMENT ON COLUMN ledger.observation.reduced IS
    'Whether the signed texts in body are reduced to their claims, without signatures and certificates, because they are old';

-- Servers send heartbeats too, and what a process that is gone had leased is taken over before its lease ends.
CREATE FUNCTION ledger.gone_at(w ledger.worker) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN w.stopped_at > w.started_at THEN w.stopped_at
                WHEN w.heartbeat_at > w.started_at THEN w.heartbeat_at + interval '20 seconds' END
$$;
COMMENT ON FUNCTION ledger.gone_at IS
    'From when a process counts as gone: since it said that it stops, or four heartbeats after its last one; null: it sends none';
COMMENT ON COLUMN ledger.worker.stopped_at IS
    'When the process said that it stops; equal to started_at: it checks single receipts on request, so no work depends on it';
