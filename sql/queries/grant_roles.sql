-- What each role may do: owner everything, worker and api the ledger without its structure, report only the schema perennial.
GRANT USAGE ON SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
GRANT USAGE ON SCHEMA ledger TO perennial_worker, perennial_api, perennial_owner;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ledger TO perennial_worker, perennial_owner;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ledger TO perennial_api;
GRANT DELETE ON ledger.poll_schedule, ledger.event_outbox TO perennial_api;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ledger TO perennial_worker, perennial_api, perennial_owner;
REVOKE EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) TO perennial_worker, perennial_owner;
