-- Updates running incidents of wrong clocks. Closes those without such an answer for $1 seconds, if Apple vouched for a
-- receipt of the app since the last one.
WITH standing AS MATERIALIZED (
    SELECT i.incident_id, verified.answers AS verified,
           i.last_at < now() - make_interval(secs => $1::float8) AND verified.lately > 0 AS is_over
    FROM ledger.incident i
    CROSS JOIN LATERAL (
        SELECT COALESCE(sum(v.answers), 0)::bigint AS answers,
               COALESCE(sum(v.answers) FILTER (WHERE v.minute > i.last_at), 0)::bigint AS lately
        FROM ledger.verified_minute v
        WHERE v.app_id = i.app_id AND v.minute >= date_trunc('minute', i.opened_at)) verified
    WHERE i.kind = 'clock' AND i.closed_at IS NULL
    ORDER BY i.app_id
    FOR NO KEY UPDATE OF i
)
UPDATE ledger.incident i SET asked = i.refused + s.verified, closed_at = CASE WHEN s.is_over THEN now() END
FROM standing s WHERE i.incident_id = s.incident_id
