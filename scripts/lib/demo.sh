# shellcheck shell=bash
# The demo: it creates the secrets, registers an app and imports receipts, each once. The folder `state` keeps the data,
# and `perennial` is the program. The calling script sets both variables.
# shellcheck disable=SC2154,SC2034

demo_app=com.example.tracker
demo_month_seconds=60

# 1 if a secret was created just now. Existing data in the database are then sealed with another one.
secrets_are_new=0

# The file appears complete or not at all, and only its owner can read it.
make_secret() {
    local file=$1
    shift
    if [[ -s $file ]]; then return 0; fi
    (umask 077 && "$@" >"$file.new") || fail "Cannot write $file: make its folder writable for this account."
    mv "$file.new" "$file"
    secrets_are_new=1
}

# 32 bytes in Base64, as PERENNIAL_MASTER_KEY_FILE requires.
random_master_key() {
    head -c 32 /dev/urandom | base64
}

# 32 hexadecimal digits, as Apple's shared secrets have.
random_shared_secret() {
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n'
}

# The simulator and the app must agree on the secret, so both read the same file.
make_secrets() {
    make_secret "$state/master-key" random_master_key
    make_secret "$state/shared-secret" random_shared_secret
}

# A key and an import belong to one database. With another database they are created again.
remember_database() {
    if [[ ! -f $state/database || "$(cat "$state/database")" != "$1" ]]; then
        forget_database
        (umask 077 && printf '%s\n' "$1" >"$state/database")
    fi
}

# The next steps fill a new database under the same name.
forget_database() {
    rm -f "$state/api-key" "$state/imported" "$state/epoch"
}

# After a restart of the simulator, the pretend customers continue where they were.
simulator_epoch() {
    if [[ ! -s $state/epoch ]]; then date -u +%Y-%m-%dT%H:%M:%SZ >"$state/epoch"; fi
    cat "$state/epoch"
}

# Replaces this shell with the pretend App Store, on an address and a port.
run_simulator() {
    exec "$perennial" simulator --host "$1" --port "$2" --seed 7 --customers 200 --month-seconds "$demo_month_seconds" \
        --epoch "$(simulator_epoch)" --shared-secret-file "$state/shared-secret"
}

# Rate 0 means no limit, because the simulator's months are short. rotate-secret tries a new secret on the simulator,
# which must run.
register_app() {
    if ! "$perennial" app show "$demo_app" >/dev/null 2>&1; then
        "$perennial" app add --bundle-id "$demo_app" --name "Demo" --shared-secret-file "$state/shared-secret" \
            --sandbox allow --rate 0
    elif [[ $secrets_are_new -eq 1 ]]; then
        "$perennial" app rotate-secret "$demo_app" --shared-secret-file "$state/shared-secret"
    fi
}

# Without a catalog every product grants an entitlement with its own name, which is acceptable.
apply_catalog() {
    if [[ -f $1 ]]; then "$perennial" catalog apply "$1"; fi
}

# The simulator listens a moment after its start. A simulator that ended never listens.
wait_for_simulator() {
    local url=$1 pid=$2 tries
    for ((tries = 150; tries > 0; tries--)); do
        if curl --fail --silent --output /dev/null --max-time 2 "$url/simulator/healthz"; then return 0; fi
        if [[ -n $pid ]] && ! kill -0 "$pid" 2>/dev/null; then return 1; fi
        sleep 0.2
    done
    return 1
}

# One receipt for each pretend customer, by the same path as a migration from another system.
import_receipts() {
    local url=$1
    if [[ -f $state/imported ]]; then return 0; fi
    curl --fail --silent --show-error --output "$state/receipts.ndjson" "$url/simulator/receipts?format=ndjson" ||
        fail "The simulator at $url returned no receipts: check its log."
    "$perennial" import "$state/receipts.ndjson"
    touch "$state/imported"
}

# Sends the pretend devices' uploads after a purchase, a return or a renewal, every few seconds. Runs as its own job.
keep_sending_uploads() {
    local url=$1 since now
    since=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    while sleep 5; do
        now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
        if curl --fail --silent --output "$state/uploads.ndjson" "$url/simulator/uploads?since=$since&format=ndjson" &&
            { [[ ! -s $state/uploads.ndjson ]] || "$perennial" import "$state/uploads.ndjson"; }; then
            since=$now
        fi
    done
}

# The database stores only a hash, so this keeps the key itself: the last word of the output.
create_api_key() {
    local printed
    if [[ -s $state/api-key ]]; then return 0; fi
    printed=$("$perennial" key create --scope admin --rate 0)
    (umask 077 && printf '%s\n' "$printed" | awk 'NF { key = $NF } END { print key }' >"$state/api-key")
}

# An example customer, from the first line of the receipts.
first_customer() {
    local customer
    customer=$(sed -n -E '1s/.*"customer" *: *"([^"]*)".*/\1/p' "$state/receipts.ndjson" 2>/dev/null) || true
    echo "${customer:-c000000}"
}
