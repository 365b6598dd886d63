-- Returns how many seconds the responding server is behind; 0 for a primary. A standby that is connected to its primary
-- and has replayed all it received is not behind. Otherwise the last replayed transaction counts, null when there was
-- none.
SELECT CASE
    WHEN NOT pg_is_in_recovery() THEN 0
    WHEN EXISTS (SELECT FROM pg_stat_wal_receiver)
        AND pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() THEN 0
    ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
END::float8 AS seconds
