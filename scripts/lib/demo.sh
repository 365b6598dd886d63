# shellcheck shell=bash
# The demo: it creates the secrets, registers an app and imports receipts, each once. The folder `state` keeps the data,
# and `perennial` is the program. The calling script sets both variables.
# shellcheck disable=SC2154,SC2034

# Its customers live fast: a month takes a minute.
demo_app=com.example.tracker
demo_month_seconds=60
demo_customers=200
# Its customers live at the speed of the calendar, and the first came a year ago.
calendar_app=com.example.journal
calendar_customers=400
# One of them, who was refunded in the autumn, stayed, and upgraded: the seed decides the lives.
demo_customer=c1000048
# Another one, who pays a term of twelve payments, cancelled it, and pays it to its end.
term_customer=c1000126
# The uploads of so many seconds are fetched at once after a stop, so that a long one does not fill the memory.
uploads_seconds_max=600

# The file appears complete or not at all, and only its owner can read it.
write_private() {
    local file=$1
    shift
    (umask 077 && "$@" >"$file.new") || fail "Cannot write $file: make its folder writable for this account."
    mv "$file.new" "$file"
}

# Existing data in the database are sealed with another secret than a new one; the mark stays until the apps have it.
make_secret() {
    local file=$1
    if [[ -s $file ]]; then return 0; fi
    touch "$state/secrets-are-new" || fail "Cannot write to $state: make it writable for this account."
    write_private "$@"
}

# 32 bytes in Base64, as PERENNIAL_MASTER_KEY_FILE requires.
random_master_key() {
    head -c 32 /dev/urandom | base64
}

# 32 hexadecimal digits, as Apple's shared secrets have.
random_shared_secret() {
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n'
}

# Seals the secrets of the apps.
make_master_key() {
    make_secret "$state/master-key" random_master_key
}

# The simulator and the app must agree on the secret, so both read the same file.
make_shared_secret() {
    make_secret "$state/shared-secret" random_shared_secret
}

# libpq's form of a password (PGPASSFILE), in which a colon and a backslash are escaped.
password_line() {
    printf '*:*:*:*:%s\n' "$(sed 's/[\\:]/\\&/g' "$1")"
}

# The id of the feed is that of the database: another one has another. Nothing while the database is away.
feed_id() {
    { "$perennial" status --format json 2>/dev/null || true; } | tr -d ' \n' |
        sed -nE 's/.*"feed":\{[^}]*"id":"([^"]+)".*/\1/p'
}

# A key and an import belong to one database. With another database they are created again.
remember_database() {
    local feed
    feed=$(feed_id)
    [[ -n $feed ]] || return 0
    if [[ -s $state/feed && "$(cat "$state/feed")" != "$feed" ]]; then
        rm -f "$state/api-key" "$state/imported" "$state/uploads-since" "$state/webhook-secret" "$state/mirror.db"
    fi
    printf '%s\n' "$feed" >"$state/feed"
}

# After a restart of the simulator, the pretend customers whose receipts were imported continue where they were.
simulator_epoch() {
    if [[ ! -s $state/epoch || ! -f $state/imported ]]; then date -u +%Y-%m-%dT%H:%M:%SZ >"$state/epoch"; fi
    cat "$state/epoch"
}

# Replaces this shell with the pretend App Store, on an address and a port.
run_simulator() {
    exec "$perennial" simulator --host "$1" --port "$2" --seed 7 --customers "$demo_customers" --month-seconds "$demo_month_seconds" \
        --epoch "$(simulator_epoch)" --shared-secret-file "$state/shared-secret" \
        --signing-authority "$state/signing-authority" --signing-root-file "$state/signing-root.pem" \
        --server-key-file "$state/server-key.p8" \
        --calendar-app "$calendar_app" --calendar-customers "$calendar_customers"
}

# Rate 0 means no limit, because the simulator's months are short. rotate-secret tries a new secret on the simulator,
# which must run.
register_app() {
    local app=$1 name=$2
    if ! "$perennial" app show "$app" >/dev/null 2>&1; then
        "$perennial" app add --bundle-id "$app" --name "$name" --shared-secret-file "$state/shared-secret" \
            --sandbox allow --rate 0
    elif [[ -f $state/secrets-are-new ]]; then
        "$perennial" app rotate-secret "$app" --shared-secret-file "$state/shared-secret"
    fi
}

# Apple states terms of payments, groups and seats in signed texts alone. The simulator wrote the key at its start, and names
# its id and its issuer in its help.
ask_server_api() {
    local app=$1
    "$perennial" app server-key --app "$app" --key-id PRETENDKEY --issuer-id 57246542-96fe-1a63-e053-0824d011072a \
        --key-file "$state/server-key.p8"
    "$perennial" app set "$app" --verifier server_api
}

# Both apps sell the same products under their own names.
register_apps() {
    local catalog=$1 is_new=0
    register_app "$demo_app" "Tracker, whose months last a minute"
    "$perennial" catalog apply "$catalog"
    if [[ -f $state/secrets-are-new ]] || ! "$perennial" app show "$calendar_app" >/dev/null 2>&1; then is_new=1; fi
    register_app "$calendar_app" "Journal, with a year of history"
    if [[ $is_new -eq 1 ]]; then ask_server_api "$calendar_app"; fi
    sed 's/tracker/journal/g' "$catalog" >"$state/journal.yaml"
    "$perennial" catalog apply "$state/journal.yaml"
    rm -f "$state/secrets-are-new"
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
    local url=$1 app
    shift
    if [[ -f $state/imported ]]; then return 0; fi
    [[ -s $state/uploads-since ]] || date +%s >"$state/uploads-since"
    for app in "$@"; do
        curl --fail --silent --show-error "$url/simulator/receipts?format=ndjson&app=$app" ||
            fail "The simulator at $url returned no receipts: check its log."
    done >"$state/receipts.ndjson"
    "$perennial" import "$state/receipts.ndjson"
    touch "$state/imported"
}

# Asks the pretend App Store about every receipt before people look, so that they see all of the past at once.
check_receipts() {
    "$perennial" worker --once --max-seconds 60 --log-level warning >"$state/first-checks.log" 2>&1 || true
}

# Imports what the pretend devices of an app sent after one second and until another.
import_uploads() {
    local url=$1 app=$2 since=$3 until=$4
    curl --fail --silent --output "$state/uploads.ndjson" \
        "$url/simulator/uploads?format=ndjson&app=$app&since=${since}000&until=${until}000" || return 1
    [[ ! -s $state/uploads.ndjson ]] || "$perennial" import "$state/uploads.ndjson"
}

# Stands for the service that gives customers what they bought. Without one, deliveries would wait until an alarm.
acknowledge_deliveries() {
    local app=$1 due
    shift
    due=$("$perennial" delivery list --app "$app" --state due --format csv "$@" | sed 1d | cut -d , -f 1)
    # shellcheck disable=SC2086  # one word for each delivery
    [[ -z $due ]] || "$perennial" delivery ack --app "$app" $due
}

# Sends the pretend devices' uploads after a purchase, a return or a renewal, every few seconds. Runs as its own job.
# As a device does, it sends again what was not stored, also what was bought while everything was stopped.
keep_sending_uploads() {
    local url=$1 since until now app
    while true; do
        since=$(cat "$state/uploads-since")
        now=$(date +%s)
        until=$((since + uploads_seconds_max < now ? since + uploads_seconds_max : now))
        if import_uploads "$url" "$demo_app" "$since" "$until" && import_uploads "$url" "$calendar_app" "$since" "$until"
        then
            echo "$until" >"$state/uploads-since.new"
            mv "$state/uploads-since.new" "$state/uploads-since"
            if [[ $until -lt $now ]]; then continue; fi
        fi
        for app in "$demo_app" "$calendar_app"; do
            acknowledge_deliveries "$app" >/dev/null || true
            acknowledge_deliveries "$app" --sandbox >/dev/null || true
        done
        sleep 5
    done
}

# The database stores only a hash, so this keeps the key itself: the last word of the output.
create_api_key() {
    local printed
    if [[ -s $state/api-key ]]; then return 0; fi
    printed=$("$perennial" key create --scope admin --rate 0)
    (umask 077 && printf '%s\n' "$printed" | awk 'NF { key = $NF } END { print key }' >"$state/api-key")
}

# The receiver of the documents mirrors what customers may use, from the first event on.
add_webhook() {
    local url=$1
    if [[ -s $state/webhook-secret ]]; then return 0; fi
    (umask 077 && "$perennial" webhook add --url "$url" --from beginning >"$state/webhook-secret.new")
    mv "$state/webhook-secret.new" "$state/webhook-secret"
}

# Replaces this shell with that receiver. It needs Python with the library standardwebhooks.
run_receiver() {
    WEBHOOK_SECRET_FILE=$state/webhook-secret MIRROR=$state/mirror.db exec python3 "$1/receive.py"
}

# The addresses of the pages, with the key to sign in, and of one customer in the API.
print_where_to_look() {
    local api=$1 key
    key=$(cat "$state/api-key")
    cat <<END

  pages     $api/admin    sign in with the key $key
            $api/admin?app=$calendar_app&days=365    an app that began a year ago, in days of the calendar
            $api/admin?app=$demo_app    an app whose months last a minute
  customer  $api/admin/customer?app=$calendar_app&id=$demo_customer    with the reasons for what it says
            $api/admin/customer?app=$calendar_app&id=$term_customer    who pays a year in twelve payments, and cancelled
  API       curl -H 'Authorization: Bearer $key' $api/v1/apps/$calendar_app/customers/$demo_customer/entitlements
            described in $api/openapi.yaml
END
}
