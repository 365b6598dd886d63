# shellcheck shell=bash
# What an operator does with the package, in a system that scripts/test-package made and booted.
set -euo pipefail
# shellcheck source=scripts/lib/say.sh
source /srv/say.sh

units=/lib/systemd/system
conf=/etc/perennial/perennial.conf
key=/etc/perennial/master-key
app=com.example.tracker

# Fails with a sentence, and what was said last.
expect() {
    local sentence=$1
    shift
    "$@" >/tmp/expected 2>&1 || { tail -n 20 /tmp/expected >&2; fail "$sentence: '$*' failed."; }
}

# The command has to fail with this status and say this.
expect_failure() {
    local status=$1 words=$2 got=0
    shift 2
    "$@" >/tmp/expected 2>&1 || got=$?
    if [[ $got -ne $status ]] || ! grep -qE -- "$words" /tmp/expected; then
        cat /tmp/expected >&2
        fail "'$*' ended with $got instead of $status, or did not say '$words'."
    fi
    printf '      %s\n' "$(grep -E -m 1 -- "$words" /tmp/expected)"
}

wait_for() {
    local sentence=$1 tries
    shift
    for ((tries = 300; tries > 0; tries--)); do
        if "$@" >/tmp/waited 2>&1; then return 0; fi
        sleep 0.2
    done
    tail -n 20 /tmp/waited >&2
    journalctl --no-pager -n 20 -u 'perennial*' >&2
    fail "$sentence within a minute."
}

answers() {
    curl --fail --silent --show-error --max-time 5 "$@"
}

property() {
    systemctl show --property "$2" --value "$1"
}

# What the running or last process of a service logged.
log_of() {
    journalctl --no-pager --output cat _SYSTEMD_INVOCATION_ID="$(property "$1" InvocationID)"
}

run_sql() {
    runuser -u postgres -- psql --no-psqlrc -qAt -v ON_ERROR_STOP=1 -d perennial -c "$1"
}

count() {
    run_sql "SELECT count(*) FROM $1"
}

# What an installation leaves, before anything was set up.
look_at_installation() {
    say "Installed: the account, the modes, the key, the units; nothing runs"
    [[ $(grep -oE '(createuser|createdb|ctl migrate|app add|doctor|enable)' /srv/install.log | xargs) == \
        "createuser createdb ctl migrate app add doctor enable" ]] || fail "The installation does not name the next steps."
    expect "There is an account" id perennial
    [[ $(stat -c '%U:%G %a' "$conf") == "root:perennial 640" ]] || fail "$conf is $(stat -c '%U:%G %a' "$conf")."
    [[ $(stat -c '%U:%G %a' "$key") == "root:root 600" ]] || fail "$key is $(stat -c '%U:%G %a' "$key")."
    [[ $(base64 -d "$key" | wc -c) -eq 32 ]] || fail "$key has not 32 bytes."
    expect_failure 1 'Permission denied' runuser -u daemon -- cat "$conf"
    if systemctl is-active --quiet perennial || systemctl is-enabled --quiet perennial; then fail "The installation started it."; fi
    expect "The program runs" perennial --version
    for file in bash-completion/completions/perennial zsh/vendor-completions/_perennial \
        fish/vendor_completions.d/perennial.fish doc/perennial/README.md doc/perennial/third-party.txt.gz; do
        [[ -s /usr/share/$file ]] || fail "/usr/share/$file is missing."
    done
    expect "bash reads its completions" bash -n /usr/share/bash-completion/completions/perennial
    expect "systemd reads the units" systemd-analyze verify perennial.service perennial-worker@9464.service
    [[ ! -s /tmp/expected ]] || { cat /tmp/expected >&2; fail "systemd has something to say about the units."; }
    for unit in perennial.service perennial-worker@.service; do
        expect "$unit is exposed at most 2.0 of 10" systemd-analyze security --offline=yes --threshold=20 "$units/$unit"
        tail -n 1 /tmp/expected
    done
    mkdir /tmp/archive
    tar -C /tmp/archive -xzf /srv/perennial.tar.gz
    expect "The program of the archive runs" /tmp/archive/*/bin/perennial --version
}

# README's way: an account and a database of PostgreSQL's, then doctor and migrate.
set_up() {
    cluster=$(find /usr/lib/postgresql -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tail -n 1)
    say "Setting up with PostgreSQL $cluster"
    expect_failure 2 'WRONG +database' perennialctl doctor
    expect "A cluster is made" pg_createcluster "$cluster" main
    systemctl start "postgresql@$cluster-main"
    runuser -u postgres -- createuser --createrole perennial
    expect_failure 2 'database "perennial" does not exist' perennialctl doctor
    runuser -u postgres -- createdb --owner perennial --encoding UTF8 --template template0 perennial
    expect_failure 2 'WRONG +schema' perennialctl doctor
    expect "The schema is made" perennialctl migrate
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >/srv/secret.txt
    perennial simulator --port 8090 --seed 7 --customers 30 --month-seconds 600 --shared-secret-file /srv/secret.txt \
        >/var/log/simulator.log 2>&1 &
    cat >>"$conf" <<END
PERENNIAL_APPSTORE_URL=http://127.0.0.1:8090/verifyReceipt
PERENNIAL_APPSTORE_SANDBOX_URL=http://127.0.0.1:8090/sandbox/verifyReceipt
PERENNIAL_APPSTORE_SERVER_URL=http://127.0.0.1:8090
PERENNIAL_APPSTORE_SERVER_SANDBOX_URL=http://127.0.0.1:8090/sandbox
PERENNIAL_POLL_SPEEDUP=4320
END
    wait_for "The simulator answers" answers http://127.0.0.1:8090/simulator/healthz
    expect "An app is added" perennialctl app add --bundle-id "$app" --rate 0 --shared-secret-file - </srv/secret.txt
    expect "Nothing is wrong" perennialctl doctor
    answers "http://127.0.0.1:8090/simulator/receipts?format=ndjson&app=$app" >/tmp/receipts.ndjson
    expect "Receipts are imported" perennialctl import - </tmp/receipts.ndjson
    api_key=$(perennialctl key create --scope read 2>/dev/null | awk 'NF { key = $NF } END { print key }')
    customer=$(sed -n '1s/.*"customer":"\([^"]*\)".*/\1/p' /tmp/receipts.ndjson)
}

everyone_was_asked() {
    [[ $(count "ledger.receipt WHERE asked_at IS NULL") -eq 0 ]]
}

look_up() {
    answers -H "Authorization: Bearer $api_key" "http://127.0.0.1:8080/v1/apps/$app/customers/$customer/entitlements" |
        grep -q '"checked_at":"2'
}

run_services() {
    say "Running perennial.service and perennial-worker@9464.service"
    expect "Both start" systemctl enable --now perennial perennial-worker@9464
    wait_for "The server is ready" answers http://127.0.0.1:8080/readyz
    wait_for "The worker is ready" answers http://127.0.0.1:9464/readyz
    wait_for "Every receipt was asked about" everyone_was_asked
    wait_for "A lookup knows when Apple was asked" look_up
    grep -q '^Max open files *8192 ' "/proc/$(property perennial MainPID)/limits" || fail "The limit of open files is another one."
    [[ $(ps -o user= -p "$(property perennial MainPID)") == perennial ]] || fail "The service runs as another account."
}

upgrade() {
    local before pids begun
    say "Upgrading over the running version: it goes on, and settings and key stay"
    before=$(sha256sum "$conf" "$key")
    pids="$(property perennial MainPID) $(property perennial-worker@9464 MainPID)"
    expect "The upgrade works" env DEBIAN_FRONTEND=noninteractive dpkg --force-confold --install /srv/perennial.deb
    grep -q "go on with the program with which they started" /tmp/expected || fail "The upgrade does not say that services go on."
    [[ $(sha256sum "$conf" "$key") == "$before" ]] || fail "The upgrade changed the settings or the key."
    [[ $(stat -c '%U:%G %a' "$conf") == "root:perennial 640" ]] || fail "The upgrade changed the mode of $conf."
    [[ "$(property perennial MainPID) $(property perennial-worker@9464 MainPID)" == "$pids" ]] || fail "A service was restarted."
    expect "Lookups go on" look_up
    begun=$SECONDS
    expect "Both restart" systemctl restart perennial perennial-worker@9464
    ((SECONDS - begun < 30)) || fail "The restart took $((SECONDS - begun)) s."
    [[ $(property perennial Result) == success ]] || fail "The service did not stop well."
    wait_for "Lookups go on after the restart" look_up
}

# As docs/operations.md says it, with the copies of the key: the right one, and one that does not fit.
drill() {
    local as=(runuser -u postgres -- env DATABASE_URL=postgresql:///perennial PERENNIAL_POLL_SPEEDUP=4320)
    say "Drilling a restore while the services run"
    expect "The copy agrees" "${as[@]}" PERENNIAL_MASTER_KEY="$(cat "$key")" /usr/share/perennial/scripts/restore-drill
    tail -n 1 /tmp/expected
    expect_failure 2 'DIFFERS: this master key does not open the secrets' "${as[@]}" \
        PERENNIAL_MASTER_KEY="$(head -c 32 /dev/urandom | base64)" /usr/share/perennial/scripts/restore-drill
}

# The page about it in docs/operations.md.
restore() {
    local receipts
    say "Restoring a dump over a lost database"
    expect "Both stop" systemctl stop perennial perennial-worker@9464
    receipts=$(count ledger.receipt)
    runuser -u perennial -- pg_dump --format=custom --dbname=postgresql:///perennial >/srv/perennial.dump
    runuser -u postgres -- dropdb perennial
    runuser -u postgres -- createdb --owner perennial --encoding UTF8 --template template0 perennial
    expect "The dump is restored" runuser -u perennial -- pg_restore --no-owner --no-privileges --exit-on-error \
        --dbname=postgresql:///perennial /srv/perennial.dump
    expect "The roles are made" perennialctl migrate
    grep -q "The feed's id is" /tmp/expected || fail "The feed has the id of the lost database."
    expect "Nothing is wrong" perennialctl doctor
    expect "No invariant is violated" perennialctl verify --repair
    [[ $(count ledger.receipt) -eq $receipts ]] || fail "The restore lost receipts."
    expect "Both start" systemctl start perennial perennial-worker@9464
    wait_for "Lookups go on after the restore" look_up
}

says() {
    log_of perennial | grep -qE -- "$1"
}

# The service says this. With a status it ends with that one, else it goes on and waits.
expect_start() {
    local words=$1 status=${2:-}
    # So many starts within seconds are these mistakes, not a loop that systemd should end.
    systemctl reset-failed perennial 2>/dev/null || true
    systemctl restart perennial 2>/dev/null || true
    wait_for "The service says '$words'" says "$words"
    printf '      %s\n' "$(log_of perennial | grep -E -m 1 -- "$words")"
    if [[ -n $status ]]; then
        wait_for "It ends" test "$(property perennial ExecMainStatus)" = "$status"
    else
        systemctl is-active --quiet perennial || fail "The service ended."
    fi
}

# What operators do wrong. doctor and the service say it in one sentence, with what to do.
make_mistakes() {
    local good
    good=$(cat "$conf")
    say "A name that is no setting"
    echo "PERENNIAL_HTP_PORT=8081" >>"$conf"
    expect_failure 2 'PERENNIAL_HTP_PORT is unknown; did you mean PERENNIAL_HTTP_PORT' perennialctl doctor
    expect_start 'PERENNIAL_HTP_PORT is unknown; did you mean PERENNIAL_HTTP_PORT'
    say "A value that is none"
    printf '%s\nPERENNIAL_HTTP_PORT=many\n' "$good" >"$conf"
    expect_failure 78 "PERENNIAL_HTTP_PORT is 'many'; give a port" perennialctl doctor
    expect_start "PERENNIAL_HTTP_PORT is 'many'; give a port" 78
    [[ $(property perennial SubState) == failed ]] || fail "systemd tries a wrong configuration again."
    printf '%s\n' "$good" >"$conf"

    say "No database"
    systemctl stop "postgresql@$cluster-main"
    expect_failure 2 'WRONG +database .*check that it runs and DATABASE_URL' perennialctl doctor
    expect_start 'error perennial: .*check that it runs and DATABASE_URL'
    systemctl start "postgresql@$cluster-main"
    wait_for "The service goes on" look_up

    say "A database that is newer than the program"
    run_sql "INSERT INTO ledger.migration (name, digest) SELECT '9999_later', digest FROM ledger.migration LIMIT 1;
        UPDATE ledger.compatibility SET program_min = program_min + 9000"
    expect_failure 2 'WRONG +schema.*run a newer perennial' perennialctl doctor
    expect_start 'run a newer perennial' 1
    run_sql "DELETE FROM ledger.migration WHERE name = '9999_later';
        UPDATE ledger.compatibility SET program_min = program_min - 9000"

    say "A master key that does not fit"
    cp -p "$key" /srv/key
    head -c 32 /dev/urandom | base64 >"$key"
    expect_failure 2 'WRONG +master_key.*set the key that it was sealed with' perennialctl doctor
    expect_start 'sealed|master key'
    echo "too short" | base64 >"$key"
    expect_failure 78 'PERENNIAL_MASTER_KEY has 10 bytes; give 32' perennialctl doctor
    expect_start 'PERENNIAL_MASTER_KEY_FILE has 10 bytes; give 32' 78
    cp -p /srv/key "$key"
    systemctl restart perennial

    say "A clock that is an hour off"
    expect_failure 2 'WRONG +clock' faketime -f +1h perennialctl doctor
}

fill_the_disk() {
    local data=/var/lib/postgresql/$cluster/main
    say "A full disk under PostgreSQL"
    systemctl stop "postgresql@$cluster-main"
    cp -a "$data" /srv/data
    mount -t tmpfs -o "size=$(($(du -sm /srv/data | cut -f 1) + 4))m" full "$data"
    cp -a /srv/data/. "$data/"
    chown postgres:postgres "$data" && chmod 700 "$data"
    systemctl start "postgresql@$cluster-main"
    dd if=/dev/zero of="$data/ballast" bs=8k status=none 2>/dev/null || true
    sed 's/"customer":"/&other-/' /tmp/receipts.ndjson >/tmp/more.ndjson
    expect_failure 1 'No space left on device|disk' perennialctl import - --again </tmp/more.ndjson
    rm "$data/ballast"
    expect "With space again it works" perennialctl import - --again </tmp/more.ndjson
}

remove_and_purge() {
    local receipts
    receipts=$(count ledger.receipt)
    say "Removing, then purging: the database stays, and so does the key"
    expect "The package is removed" dpkg --remove perennial
    [[ ! -e /usr/bin/perennial && ! -e $units/perennial.service ]] || fail "The removal left the program or its unit."
    if pgrep -u perennial >/dev/null; then fail "The removal left a process: $(pgrep -a -u perennial)."; fi
    [[ -s $conf && -s $key ]] || fail "The removal took the settings or the key."
    expect "It is installed again" dpkg --install /srv/perennial.deb
    grep -q "no service runs, and the settings" /tmp/expected || fail "It does not say that no service runs."
    expect "The package is purged" dpkg --purge perennial
    grep -q /var/backups/perennial-master-key /tmp/expected || fail "The purge does not say where the key is."
    [[ ! -e /etc/perennial ]] || fail "The purge left $(ls -A /etc/perennial)."
    [[ -z $(find /etc/systemd -name 'perennial*') ]] || fail "The purge left links of the units."
    cmp -s /srv/key /var/backups/perennial-master-key || fail "The purge lost the key."
    [[ $(count ledger.receipt) -eq $receipts ]] || fail "The purge changed the database."
}

look_at_installation
set_up
run_services
upgrade
drill
restore
make_mistakes
fill_the_disk
remove_and_purge
