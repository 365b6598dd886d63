-- The promises check themselves: what workers lease by, when each invariant was looked at, and what was found.
ALTER TABLE ledger.worker
    ADD COLUMN lease_seconds double precision,
    ADD COLUMN speedup int,
    ADD CONSTRAINT worker_lease_is_some_time CHECK (lease_seconds > 0),
    ADD CONSTRAINT worker_speedup_is_at_least_one CHECK (speedup >= 1);
COMMENT ON COLUMN ledger.worker.lease_seconds IS
    'How long a claim of this worker lasts, before crashes make it longer; null: a program that did not say so';
COMMENT ON COLUMN ledger.worker.speedup IS 'By what this worker divides every delay of the schedule';

-- One row for each thing that workers look through in turn; one worker at a time has the turn. A worker that moves no more
-- loses it.
CREATE TABLE ledger.verify_turn (
    name       text PRIMARY KEY,
    worker_id  int,
    begun_at   timestamptz NOT NULL DEFAULT '-infinity',
    moved_at   timestamptz NOT NULL DEFAULT '-infinity',
    ended_at   timestamptz
);
INSERT INTO ledger.verify_turn (name) VALUES ('coverage'), ('everything');

CREATE TABLE ledger.invariant (
    name        text PRIMARY KEY,
    violations  bigint NOT NULL,
    repaired    bigint NOT NULL,
    checked_at  timestamptz NOT NULL,
    CONSTRAINT invariant_counts_what_it_found CHECK (0 <= repaired AND repaired <= violations)
);
COMMENT ON TABLE ledger.invariant IS
    'What a worker found when it last looked through everything for violations of an invariant';
COMMENT ON COLUMN ledger.invariant.violations IS 'Found, those that were repaired at once among them';
