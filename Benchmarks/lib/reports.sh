# shellcheck shell=bash
# How long the overview and every report take on a shop of many subscriptions with three years behind them.
# `postgres` is set by scripts/lib/postgres.sh.
# shellcheck disable=SC2154

reports_port=8193

# Arguments: the product's executable, the cluster's folder, how many subscriptions.
measure_reports() {
    local perennial=$1 cluster=$2 subscriptions=${3:-1000000}
    "$perennial" migrate >/dev/null
    say "Making $subscriptions subscriptions"
    as_database_account "$postgres/psql" --host="$cluster" --username=postgres --dbname=perennial --no-psqlrc --quiet \
        --output=/dev/null --set=subscriptions="$subscriptions" <"$(dirname "${BASH_SOURCE[0]}")/../summaries/generate.sql"
    time_first_round "$perennial" "$cluster"
    time_reports "$perennial"
    time_overview "$perennial"
}

# Apple is not asked about these receipts: the app is paused, and a worker has the summaries to keep and nothing else.
time_first_round() {
    local perennial=$1 cluster=$2 worker
    reports_psql "$cluster" \
        "UPDATE ledger.app_budget SET paused_until = now() + interval '1 day', paused_because = 'other'"
    say "Summarising all of them"
    SECONDS=0
    "$perennial" worker --log-level error &
    worker=$!
    until [[ $(reports_psql "$cluster" "SELECT is_complete FROM perennial.summary_now") == t ]]; do sleep 1; done
    echo "summaries: the first round took $SECONDS s"
    kill "$worker"
    wait "$worker" || true
    reports_psql "$cluster" "VACUUM (ANALYZE)"
}

# Every report by its defaults, as a person runs it.
time_reports() {
    local perennial=$1 name
    say "Reports"
    for name in $("$perennial" report list --format csv | tail -n +2 | cut -d, -f1); do
        [[ $name == summaries_check ]] || time_command "$name" "$perennial" report "$name" --format csv
    done
}

# The page as a browser gets it, three times: the first is cold.
time_overview() {
    local perennial=$1 server work
    work=$(mktemp -d)
    "$perennial" key create --scope admin 2>/dev/null | awk 'NF { key = $NF } END { print key }' >"$work/key"
    "$perennial" serve --http-port "$reports_port" --log-level error &
    server=$!
    until curl --silent --fail --output /dev/null "http://localhost:$reports_port/readyz"; do sleep 0.2; done
    curl --silent --cookie-jar "$work/jar" --output /dev/null --header "Origin: http://localhost:$reports_port" \
        --data-urlencode "key@$work/key" "http://localhost:$reports_port/admin/session"
    for _ in 1 2 3; do
        curl --silent --cookie "$work/jar" --output "$work/page" \
            --write-out 'overview over HTTP: status %{http_code}, %{size_download} bytes, %{time_total} s\n' \
            "http://localhost:$reports_port/admin"
    done
    kill "$server"
    wait "$server" || true
    rm -r "$work"
}

# Arguments: a name, a command.
time_command() {
    local name=$1 lines
    shift
    local TIMEFORMAT="$name: %R s"
    time lines=$("$@" | wc -l)
    echo "    $lines lines"
}

reports_psql() {
    as_database_account "$postgres/psql" --host="$1" --username=postgres --dbname=perennial --no-psqlrc --quiet \
        --no-align --tuples-only --command="$2"
}
