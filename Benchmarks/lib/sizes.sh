# shellcheck shell=bash
# How the cost of a claim depends on the size of the schedule. The statements are the product's own files.
# `postgres` is set by scripts/lib/postgres.sh.
# shellcheck disable=SC2154

# Rounds of one measurement; each claims a hundred receipts, five of each of twenty apps.
sizes_rounds=90
# Rounds while a transaction is held open: ten minutes at 500 receipts a second; those counted, at its end and without it.
sizes_rounds_held=3000
sizes_rounds_counted=300
# The size whose growth is measured, by as many cycles of claim and settlement. Time goes four times as fast, and the
# server looks for tables to tidy up four times as often as it usually does.
sizes_growth=1000000
sizes_growth_rate=2000
sizes_growth_naptime=15

# Arguments: the root of the checkout, the cluster's folder, numbers of receipts.
measure_sizes() {
    local root=$1 cluster=$2 size begin
    shift 2
    if [[ $# -eq 0 ]]; then set -- 10000 100000 1000000; fi
    for size in "$@"; do
        begin=$SECONDS
        make_schedule "$root" "$cluster" "sizes_$size" "$size"
        say "$size receipts (filled in $((SECONDS - begin)) s): medians in milliseconds; each claim is of 100"
        measure_claims "$root" "$cluster" "sizes_$size" "$size"
        if ((size >= 200 * sizes_rounds_held)); then measure_held "$root" "$cluster" "sizes_$size" "$size"; fi
        as_database_account "$postgres/dropdb" --host="$cluster" --username=postgres "sizes_$size"
        if ((size == sizes_growth)); then
            make_schedule "$root" "$cluster" sizes_growth "$size"
            measure_growth "$root" "$cluster" sizes_growth "$size"
            as_database_account "$postgres/dropdb" --host="$cluster" --username=postgres sizes_growth
        fi
    done
}

# Arguments: the root, the cluster, the database to make, the number of receipts.
make_schedule() {
    local root=$1 cluster=$2 database=$3 size=$4
    as_database_account "$postgres/createdb" --host="$cluster" --username=postgres "$database"
    {
        statement "$root" lock_migrations
        cat "$root"/sql/migrations/*.sql "$root/Benchmarks/lib/claim_rounds.sql"
        make_function "$root" claim claim claimed \
            "int, float8, int[], text[], int[], timestamptz, timestamptz, timestamptz[]"
        make_function "$root" count_due look due "int, timestamptz, int[], text[], timestamptz[]"
    } | sizes_psql "$cluster" "$database" --set=ON_ERROR_STOP=1 >/dev/null
    # What is filled need not survive a crash; what is measured is written as it always is.
    set_fsync "$cluster" "$database" off
    sizes_psql "$cluster" "$database" --set=receipts="$size" <"$root/Benchmarks/lib/fill_schedule.sql"
    set_fsync "$cluster" "$database" on
}

set_fsync() {
    sizes_psql "$1" "$2" --command="ALTER SYSTEM SET fsync = $3" --command="SELECT pg_reload_conf()" >/dev/null
}

# One of the product's statements about claims as a function, whose plan a session keeps as it does that of a prepared statement.
# Arguments: the root, the statement, the function's name, the type of its rows, the types of its parameters.
make_function() {
    echo "CREATE FUNCTION bench.$3($5) RETURNS SETOF bench.$4 LANGUAGE plpgsql AS \$body\$ BEGIN RETURN QUERY"
    statement "$1" "$2" | sed 's/;[[:space:]]*$//'
    echo "; END \$body\$;"
}

# Claims while everything is due.
measure_claims() {
    local root=$1 cluster=$2 database=$3 size=$4
    set_clock "$cluster" "$database" "$size * interval '2 ms'"
    work "$root" "$cluster" "$database" "all due" "$sizes_rounds" 0
    show_median "$cluster" "$database" "all due" "$sizes_rounds"
}

# The same, and claims as receipts come due, while workers go on for ten minutes beside an open transaction.
measure_held() {
    local root=$1 cluster=$2 database=$3 size=$4
    # What the claims before took away came due in the first twenty seconds.
    set_clock "$cluster" "$database" "interval '20 seconds'"
    work "$root" "$cluster" "$database" "as it comes due" "$sizes_rounds_counted" 0.2
    show_median "$cluster" "$database" "as it comes due" "$sizes_rounds_counted"
    hold "$cluster" "$database"
    work "$root" "$cluster" "$database" "as it comes due, held" "$sizes_rounds_held" 0.2
    show_median "$cluster" "$database" "as it comes due, held" "$sizes_rounds_counted"
    let_go
    sizes_psql "$cluster" "$database" --command="VACUUM ledger.poll_schedule"
    set_clock "$cluster" "$database" "$size * interval '2 ms'"
    work "$root" "$cluster" "$database" "all due" "$sizes_rounds_counted" 0
    show_median "$cluster" "$database" "all due" "$sizes_rounds_counted"
    hold "$cluster" "$database"
    work "$root" "$cluster" "$database" "all due, held" "$sizes_rounds_held" 0
    show_median "$cluster" "$database" "all due, held" "$sizes_rounds_counted"
    let_go
}

# How much the table and its due index grow while each receipt is claimed and settled once.
measure_growth() {
    local root=$1 cluster=$2 database=$3 size=$4
    sizes_psql "$cluster" "$database" --command="ALTER SYSTEM SET autovacuum_naptime = $sizes_growth_naptime" \
        --command="SELECT pg_reload_conf()" >/dev/null
    echo "megabytes of the table and its due index before $size cycles: $(megabytes "$cluster" "$database")"
    work "$root" "$cluster" "$database" growth $((size / 100)) 0.2 \
        "$(awk "BEGIN { print 100 / $sizes_growth_rate }")"
    echo "  after them, at $sizes_growth_rate a second: $(megabytes "$cluster" "$database")"
    sizes_psql "$cluster" "$database" --command="ALTER SYSTEM RESET autovacuum_naptime" \
        --command="SELECT pg_reload_conf()" >/dev/null
}

megabytes() {
    sizes_psql "$1" "$2" --command="
        SELECT format('%s and %s', pg_relation_size('ledger.poll_schedule') >> 20,
                      pg_relation_size('ledger.poll_schedule_due') >> 20)"
}

# Arguments: the cluster, the database, the time since the first receipt came due.
set_clock() {
    sizes_psql "$1" "$2" --command="UPDATE bench.clock SET at = began_at + $3"
}

# Arguments: the root, the cluster, the database, a name, rounds, seconds of the clock in each, and really.
work() {
    local root=$1 cluster=$2 database=$3 mode=$4 rounds=$5 step=$6 each=${7:-0} margin
    margin=$(sed -n 's/.*static let margin = Delay.seconds(\([0-9]*\)).*/\1/p' "$root/Sources/Tracking/Schedule/ClaimDue.swift")
    for ((; rounds > 0; rounds -= 150)); do
        echo "CALL bench.work('$mode', LEAST($rounds, 150), interval '$step seconds', interval '$margin seconds', $each);"
    done | sizes_psql "$cluster" "$database" --set=ON_ERROR_STOP=1
}

show_median() {
    sizes_psql "$1" "$2" --command="
        SELECT format('%s: look %s, claim %s, together %s', '$3', look_ms, claim_ms, look_ms + claim_ms)
        FROM bench.median('$3', $4)"
}

holder=
holder_pipe=

# Starts a session whose open transaction keeps the present snapshot.
hold() {
    holder_pipe=$1/hold
    mkfifo "$holder_pipe"
    sizes_psql "$1" "$2" <"$holder_pipe" >/dev/null &
    holder=$!
    exec 9>"$holder_pipe"
    echo "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledger.app;" >&9
    sleep 1
}

let_go() {
    exec 9>&-
    wait "$holder"
    rm -f "$holder_pipe"
}

# Plans are not compiled, as the product asks of its connections.
sizes_psql() {
    local cluster=$1 database=$2
    shift 2
    PGOPTIONS="-c jit=off" as_database_account "$postgres/psql" --host="$cluster" --username=postgres --dbname="$database" --no-psqlrc --quiet \
        --no-align --tuples-only "$@"
}
