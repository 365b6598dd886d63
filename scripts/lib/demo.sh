# shellcheck shell=bash
# The demo: secrets made once, an app registered once, receipts imported once. What is remembered lies in `state`; the
# program is `perennial`; both are set by whoever uses these functions.
# shellcheck disable=SC2154,SC2034

demo_app=com.example.tracker
demo_month_seconds=60

# 1 when a secret was made just now: whatever the database holds was then sealed with another one.
secrets_are_new=0

# A secret appears whole or not at all, and only its owner reads it.
make_secret() {
    local file=$1
    shift
    if [[ -s $file ]]; then return 0; fi
    (umask 077 && "$@" >"$file.new") || fail "Cannot write $file: make its folder writable for this account."
    mv "$file.new" "$file"
    secrets_are_new=1
}

# 32 bytes in Base64, as PERENNIAL_MASTER_KEY_FILE wants them.
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

# A key and an import belong to one database; with another database they are made again.
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

# The pretend customers' lives go on where they stood when the simulator starts again.
simulator_epoch() {
    if [[ ! -s $state/epoch ]]; then date -u +%Y-%m-%dT%H:%M:%SZ >"$state/epoch"; fi
    cat "$state/epoch"
}

# The pretend App Store on an address and a port, instead of this shell.
run_simulator() {
    exec "$perennial" simulator --host "$1" --port "$2" --seed 7 --customers 200 --month-seconds "$demo_month_seconds" \
        --epoch "$(simulator_epoch)" --shared-secret-file "$state/shared-secret"
}

# Rate 0 is no limit: the simulator's months are short. A new secret is tried on the simulator, which must run.
register_app() {
    if ! "$perennial" app show "$demo_app" >/dev/null 2>&1; then
        "$perennial" app add --bundle-id "$demo_app" --name "Demo" --shared-secret-file "$state/shared-secret" \
            --sandbox allow --rate 0
    elif [[ $secrets_are_new -eq 1 ]]; then
        "$perennial" app rotate-secret "$demo_app" --shared-secret-file "$state/shared-secret"
    fi
}

# Without a catalog every product grants an entitlement of its own name, which is fine too.
apply_catalog() {
    if [[ -f $1 ]]; then "$perennial" catalog apply "$1"; fi
}

# The simulator listens a moment after it starts; a simulator that ended will never listen.
wait_for_simulator() {
    local url=$1 pid=$2 tries
    for ((tries = 150; tries > 0; tries--)); do
        if curl --fail --silent --output /dev/null --max-time 2 "$url/simulator/healthz"; then return 0; fi
        if [[ -n $pid ]] && ! kill -0 "$pid" 2>/dev/null; then return 1; fi
        sleep 0.2
    done
    return 1
}

# One receipt for each pretend customer, through the same door that a migration from another system would take.
import_receipts() {
    local url=$1
    if [[ -f $state/imported ]]; then return 0; fi
    curl --fail --silent --show-error --output "$state/receipts.ndjson" "$url/simulator/receipts?format=ndjson" ||
        fail "The simulator at $url gave no receipts: look at its log."
    "$perennial" import "$state/receipts.ndjson"
    touch "$state/imported"
}

# What the pretend devices send after a purchase, a return or a renewal, every few seconds. Run as a job of its own.
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

# Only a hash is stored in the database, so the key itself is kept here; it is the last word that is printed.
create_api_key() {
    local printed
    if [[ -s $state/api-key ]]; then return 0; fi
    printed=$("$perennial" key create --scope admin --rate 0)
    (umask 077 && printf '%s\n' "$printed" | awk 'NF { key = $NF } END { print key }' >"$state/api-key")
}

# Some customer to ask about; the first line names one.
first_customer() {
    local customer
    customer=$(sed -n -E '1s/.*"customer" *: *"([^"]*)".*/\1/p' "$state/receipts.ndjson" 2>/dev/null) || true
    echo "${customer:-c000000}"
}
