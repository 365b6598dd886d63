-- How far the comparison of the channels came for the app with bundle $1; no row where only one is asked.
SELECT c.compares_since, now() AS at, c.live, c.compared, (
           SELECT count(*) FROM perennial.channel_difference d
           WHERE d.bundle_id = c.bundle_id AND d.standing IN ('unexplained', 'waiting')) AS open
FROM perennial.channel_coverage c
WHERE c.bundle_id = $1::text
