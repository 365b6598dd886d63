-- Counts receipts that wait for Apple and have provisional access, up to $1; also the end of the last such access.
SELECT count(*) AS receipts,
       CASE WHEN count(*) < $1::int THEN max(w.until) ELSE (SELECT max(p.until) FROM ledger.provisional p) END AS until
FROM (
    SELECT word.until
    FROM ledger.app a
    JOIN ledger.poll_schedule s ON s.app_id = a.app_id AND s.lane IN ('new', 'import')
    CROSS JOIN LATERAL (
        SELECT max(p.until) AS until FROM ledger.provisional p WHERE p.receipt_id = s.receipt_id) word
    WHERE word.until > now()
    LIMIT $1::int) w
