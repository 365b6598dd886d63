# shellcheck shell=bash
# The private PostgreSQL of the tests: removed after a run, or kept for the next runs of the same clone.
# The calling script sets `root`, and `postgres` by `require_postgres`.
# shellcheck disable=SC2154

# The folder of this run's cluster, if it has one.
cluster=

# 1 if the cluster outlives this run.
cluster_is_kept=0

# Two clones never share a cluster, because the record of the kept one is in the build folder.
kept_record=$root/.build/test-cluster
kept_user=$root/.build/test-cluster.pid

# Each test copies a database of six hundred files. In memory this takes a tenth of the time.
memory_folder() {
    local folder=/dev/shm free
    [[ -d $folder && -w $folder ]] || return 0
    free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
    if ((free >= 2 * 1024 * 1024)); then echo "$folder"; fi
}

# The caller's temporary folder may be closed to the server's account, or its path too long for a socket.
make_cluster_folder() {
    local parent
    for parent in $(memory_folder) "${TMPDIR:-/tmp}" /tmp; do
        cluster=$(mktemp -d "${parent%/}/perennial-test.XXXXXX") || continue
        if is_fit_for_sockets "$cluster" && give_to_database_account "$cluster"; then return 0; fi
        rm -rf "$cluster"
        cluster=
    done
    fail "No temporary folder that PostgreSQL can use: set TMPDIR to a short path that other accounts can enter."
}

# A crash may destroy the data, so nothing needs to reach the disk. Sessions are short, so each statement is planned once
# and not five times anew: with this, tests that settle take a fifth less of the server's time.
create_test_cluster() {
    local settings=$'fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 400'
    settings+=$'\nplan_cache_mode = force_generic_plan'
    say "Starting a private PostgreSQL ($("$postgres/postgres" --version))"
    make_cluster_folder
    create_cluster "$cluster/data" "$cluster" "$settings" --no-sync
    # Planning takes and frees much memory. A session that gives it back to the system each time spends a tenth more.
    MALLOC_TRIM_THRESHOLD_=$((128 << 20)) start_cluster "$cluster/data" "$cluster" "$cluster/log"
}

# One run at a time uses the kept cluster. The file appears complete or not at all; that of a killed run is stale.
claim_kept_cluster() {
    local pid
    pid=$(cat "$kept_user" 2>/dev/null) || pid=
    if is_running "$pid" "*bash*test*"; then return 1; fi
    mkdir -p "$(dirname "$kept_user")"
    rm -f "$kept_user"
    (set -C && echo "$$" >"$kept_user") 2>/dev/null
}

# A record may outlive its cluster, for example after a restart of the machine.
recorded_cluster() {
    local folder
    folder=$(cat "$kept_record" 2>/dev/null) || return 1
    [[ $folder == */perennial-test.* && -d $folder/data ]] || return 1
    echo "$folder"
}

# An interrupted run leaves its databases behind. The template has a name of its own and stays.
drop_leftover_databases() {
    "$postgres/psql" --no-psqlrc --quiet --dbname "$(database_uri "$1" postgres)" >/dev/null 2>&1 <<'END'
\set ON_ERROR_STOP on
SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database
WHERE datname NOT IN ('postgres', 'template0', 'template1') AND datname !~ '^perennial_template_[0-9a-f]{16}$' \gexec
END
}

# Succeeds if the kept cluster is alive, answers and belongs to this run now.
use_kept_cluster() {
    local folder
    folder=$(recorded_cluster) || return 1
    as_database_account "$postgres/pg_ctl" status --pgdata="$folder/data" >/dev/null 2>&1 || return 1
    claim_kept_cluster || return 1
    if ! drop_leftover_databases "$folder"; then
        rm -f "$kept_user"
        return 1
    fi
    cluster=$folder
    cluster_is_kept=1
    say "Using the PostgreSQL kept in $cluster"
}

# Records this run's cluster for later runs. A cluster that another run uses stays the recorded one.
keep_cluster() {
    if [[ $cluster_is_kept -eq 1 ]]; then return 0; fi
    if ! claim_kept_cluster; then
        say "Another run uses the kept PostgreSQL, so this run keeps none"
        return 0
    fi
    remove_kept_cluster
    echo "$cluster" >"$kept_record"
    cluster_is_kept=1
}

# Removes the recorded cluster, alive or not.
remove_kept_cluster() {
    local folder
    if folder=$(recorded_cluster); then
        stop_cluster "$folder/data" immediate
        rm -rf "$folder"
    fi
    rm -f "$kept_record"
}

# The same for a user who asks for it.
stop_kept_cluster() {
    claim_kept_cluster || fail "A run of scripts/test uses the kept PostgreSQL: wait for its end and try again."
    remove_kept_cluster
    rm -f "$kept_user"
}

# The end of a run: a kept cluster goes on, another one is removed.
leave_cluster() {
    [[ -n $cluster ]] || return 0
    if [[ $cluster_is_kept -eq 1 ]]; then
        rm -f "$kept_user"
    else
        stop_cluster "$cluster/data" immediate
        rm -rf "$cluster"
    fi
}

# The entry for a run that tests. The argument is 1 if the cluster is to be kept.
provide_test_cluster() {
    use_kept_cluster || create_test_cluster
    if [[ $1 -eq 1 ]]; then keep_cluster; fi
    PERENNIAL_TEST_DATABASE_URL=$(database_uri "$cluster" postgres)
    # Tests that stop servers create their own clusters beside it.
    PERENNIAL_TEST_FOLDER=$(dirname "$cluster")
    export PERENNIAL_TEST_DATABASE_URL PERENNIAL_TEST_FOLDER
}
