# shellcheck shell=bash
# How long a new purchase waits for its check while a great many sweeps are due and the app's rate is the limit.
# `postgres` is set by scripts/lib/postgres.sh.
# shellcheck disable=SC2154

# Calls a second that the app may make, and seconds in which five purchases each come.
backlog_rate=50
backlog_seconds=60
backlog_port=8192

# Arguments: the product's executable, the cluster's folder, how many sweeps are due.
measure_backlog() {
    local perennial=$1 cluster=$2 sweeps=${3:-1000000} work simulator worker second
    work=$(mktemp -d)
    echo 0123456789abcdef0123456789abcdef >"$work/secret"
    export PERENNIAL_APPSTORE_URL=http://127.0.0.1:$backlog_port/verifyReceipt
    export PERENNIAL_APPSTORE_SANDBOX_URL=http://127.0.0.1:$backlog_port/sandbox/verifyReceipt
    "$perennial" migrate >/dev/null
    "$perennial" app add --bundle-id com.example.tracker --shared-secret-file "$work/secret" --rate 0 >/dev/null
    "$perennial" simulator --port "$backlog_port" --customers 500 --sandbox-customers 0 --arrivals-per-month 0 \
        --month-seconds 2592000 --still --shared-secret-file "$work/secret" >/dev/null &
    simulator=$!
    until curl --silent --fail --output "$work/receipts" \
        "http://127.0.0.1:$backlog_port/simulator/receipts?format=ndjson"; do sleep 0.2; done
    "$perennial" import "$work/receipts" >/dev/null 2>&1
    "$perennial" worker --once 2>/dev/null || true
    say "Making $sweeps sweeps due"
    backlog_psql "$cluster" --set=receipts="$sweeps" <"$(dirname "${BASH_SOURCE[0]}")/fill_backlog.sql"
    "$perennial" app set com.example.tracker --rate "$backlog_rate" >/dev/null
    "$perennial" worker 2>/dev/null &
    worker=$!
    sleep 5
    for ((second = 0; second < backlog_seconds; second++)); do
        backlog_psql "$cluster" <"$(dirname "${BASH_SOURCE[0]}")/send_purchases.sql"
        sleep 1
    done
    sleep 5
    kill "$worker" "$simulator"
    wait
    rm -r "$work"
    backlog_psql "$cluster" --command="
        SELECT format('%s purchases beside %s sweeps at %s calls a second: due to checked in seconds: '
            || '50 %% %s, 99 %% %s, all %s; never asked: %s',
            count(*), '$sweeps', '$backlog_rate', round(percentile_cont(0.5) WITHIN GROUP (ORDER BY wait)::numeric, 2),
            round(percentile_cont(0.99) WITHIN GROUP (ORDER BY wait)::numeric, 2), round(max(wait)::numeric, 2),
            count(*) FILTER (WHERE wait IS NULL))
        FROM (
            SELECT extract(epoch FROM r.asked_at - p.due_at) AS wait
            FROM purchase_sent p JOIN ledger.receipt r USING (receipt_id)) w"
}

backlog_psql() {
    local cluster=$1
    shift
    as_database_account "$postgres/psql" --host="$cluster" --username=postgres --dbname=perennial --no-psqlrc --quiet \
        --no-align --tuples-only "$@"
}
