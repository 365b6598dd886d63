-- Deletes refusals and counts older than $1 seconds, of apps without a running incident.
WITH old AS (
    SELECT date_trunc('minute', now() - make_interval(secs => $1::float8)) AS at
), forgotten AS (
    DELETE FROM ledger.refusal f USING old
    WHERE f.counts AND f.refused_at < old.at
      AND NOT EXISTS (
          SELECT FROM ledger.incident i WHERE i.app_id = f.app_id AND i.kind = 'refusals' AND i.closed_at IS NULL)
)
DELETE FROM ledger.verified_minute v USING old
WHERE v.minute < old.at
  AND NOT EXISTS (SELECT FROM ledger.incident i WHERE i.app_id = v.app_id AND i.closed_at IS NULL)
