# shellcheck shell=bash
# How the cost of a claim depends on the size of the schedule. The statements are the product's own files, run by psql.
# `postgres` is set by scripts/lib/postgres.sh.
# shellcheck disable=SC2154

# Claims of one measurement, and receipts in each: five of each of twenty apps.
claims=60
receipts_each=5
apps="'{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}'"
# Receipts claimed and settled while a transaction is held open: ten minutes at 500 a second.
receipts_held=300000

# Arguments: the root of the checkout, the cluster's folder, numbers of receipts.
measure_sizes() {
    local root=$1 cluster=$2 size
    shift 2
    if [[ $# -eq 0 ]]; then set -- 10000 100000 1000000; fi
    say "Claims of $((20 * receipts_each)): median of $claims, in milliseconds"
    for size in "$@"; do measure_size "$root" "$cluster" "$size"; done
}

measure_size() {
    local root=$1 cluster=$2 size=$3 begin=$SECONDS
    make_schedule "$root" "$cluster" "$size"
    say "$size receipts (filled in $((SECONDS - begin)) s)"
    echo "claim: $(claim_median "$root" "$cluster" "'-infinity'" "$claims")"
    echo "count what is due: $(count_median "$root" "$cluster" "'-infinity'")"
    if ((size >= 2 * receipts_held)); then measure_held "$root" "$cluster"; fi
    as_database_account "$postgres/dropdb" --host="$cluster" --username=postgres sizes
}

make_schedule() {
    local root=$1 cluster=$2 size=$3
    as_database_account "$postgres/createdb" --host="$cluster" --username=postgres sizes
    {
        echo "CREATE SCHEMA ledger;"
        cat "$root"/sql/migrations/*.sql
    } | sizes_psql "$cluster" --set=ON_ERROR_STOP=1
    sizes_psql "$cluster" --set=receipts="$size" <"$root/Benchmarks/lib/fill_schedule.sql"
}

# The same while somebody keeps a transaction open in which as much was claimed as workers do in ten minutes.
measure_held() {
    local root=$1 cluster=$2 holder rounds=$((receipts_held / 20 / 500)) before after
    before=$(sizes_of_schedule "$cluster")
    mkfifo "$cluster/hold"
    sizes_psql "$cluster" <"$cluster/hold" >/dev/null &
    holder=$!
    exec 9>"$cluster/hold"
    echo "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledger.app;" >&9
    sleep 1
    claim_all "$root" "$rounds" 500 | sizes_psql "$cluster" >/dev/null
    after=$(sizes_of_schedule "$cluster")
    echo "beside an open transaction in which $receipts_held were claimed and settled:"
    echo "  claim, from the low-water mark: $(claim_median "$root" "$cluster" "$(low_water "$cluster")" "$claims")"
    echo "  claim, from the beginning: $(claim_median "$root" "$cluster" "'-infinity'" "$claims")"
    echo "  count what is due, from the low-water mark: $(count_median "$root" "$cluster" "$(low_water "$cluster")")"
    echo "  count what is due, from the beginning: $(count_median "$root" "$cluster" "'-infinity'")"
    echo "COMMIT;" >&9
    exec 9>&-
    wait "$holder"
    rm -f "$cluster/hold"
    echo "  megabytes of the table and its due index: $before before, $after after"
    sizes_psql "$cluster" --command="VACUUM ledger.poll_schedule" >/dev/null
    claim_all "$root" "$rounds" 500 | sizes_psql "$cluster" >/dev/null
    echo "  after a vacuum and as many claims again: $(sizes_of_schedule "$cluster")"
}

# The oldest time at which anything is still due: what a process remembers of its last claim.
low_water() {
    echo "'$(sizes_psql "$1" --command="SELECT min(due_at) FROM ledger.poll_schedule WHERE leased_by IS NULL")'"
}

sizes_of_schedule() {
    sizes_psql "$1" --command="
        SELECT pg_relation_size('ledger.poll_schedule') >> 20, pg_relation_size('ledger.poll_schedule_due') >> 20" |
        tr '|' '+'
}

# Prepares the product's claim; argument: the root.
prepare_claim() {
    echo "PREPARE claim (int, float8, int[], smallint[], int[], timestamptz, timestamptz, timestamptz[]) AS"
    sed 's/;[[:space:]]*$//' "$1/sql/queries/claim.sql"
    echo ";"
}

execute_claim() {
    local each=$1 low=$2
    echo "EXECUTE claim(1, 3600, $apps, array_fill(4::smallint, ARRAY[20]),"
    echo "    array_fill($each, ARRAY[20]), NULL, NULL, array_fill($low::timestamptz, ARRAY[20]));"
}

# Claims in rounds, and settles each as if it were asked about again in three days.
claim_all() {
    local root=$1 rounds=$2 each=$3 round
    prepare_claim "$root"
    for ((round = 0; round < rounds; round++)); do
        execute_claim "$each" "'-infinity'"
        echo "UPDATE ledger.poll_schedule SET due_at = now() + interval '3 days' * random(), leased_by = NULL"
        echo "WHERE leased_by IS NOT NULL AND due_at > now() AND due_at < now() + interval '2 hours';"
    done
}

# The median of claims that follow each other.
claim_median() {
    local root=$1 cluster=$2 low=$3 count=$4 number
    {
        prepare_claim "$root"
        printf '%s\n' '\timing on'
        for ((number = 0; number < count; number++)); do
            execute_claim "$receipts_each" "$low"
        done
    } | sizes_psql "$cluster" | median_time
}

count_median() {
    local root=$1 cluster=$2 low=$3 number
    {
        echo "PREPARE looked (int, timestamptz, int[], smallint[], timestamptz[]) AS"
        sed 's/;[[:space:]]*$//' "$root/sql/queries/count_due.sql"
        echo ";"
        printf '%s\n' '\timing on'
        for ((number = 0; number < 20; number++)); do
            echo "EXECUTE looked(192, NULL, $apps, array_fill(4::smallint, ARRAY[20]),"
            echo "    array_fill($low::timestamptz, ARRAY[20]));"
        done
    } | sizes_psql "$cluster" | median_time
}

median_time() {
    sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | sort -n | awk '{ times[NR] = $1 } END { print times[int((NR + 1) / 2)] }'
}

sizes_psql() {
    local cluster=$1
    shift
    as_database_account "$postgres/psql" --host="$cluster" --username=postgres --dbname=sizes --no-psqlrc --quiet \
        --no-align --tuples-only "$@"
}
