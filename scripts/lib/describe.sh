# shellcheck shell=bash
# Checks docs/openapi.yaml: schemathesis runs every operation against a live server. scripts/test sources this file.

schemathesis_version=4.32.5
standardwebhooks_version=1.1.0

# Installs once, into a Python environment of its own under .build: schemathesis, and what receivers of webhooks use.
install_schemathesis() {
    local home=$1
    install_environment "$home"
    [[ -e $home/standardwebhooks ]] && return 0
    "$home/bin/pip" install --quiet "standardwebhooks==$standardwebhooks_version" && touch "$home/standardwebhooks" ||
        say "standardwebhooks could not be fetched from PyPI (see the lines above), so no receiver in Python is tested"
}

install_environment() {
    local home=$1
    [[ -x $home/bin/schemathesis ]] && return 0
    command -v python3 >/dev/null || fail "schemathesis needs python3 with its venv module: install both, then run this again."
    python3 -m venv "$home" || fail "python3 cannot create a virtual environment: install its venv module (python3-venv)."
    "$home/bin/pip" install --quiet "schemathesis==$schemathesis_version" jsonschema ||
        fail "schemathesis could not be installed from PyPI: see the lines above."
}

# Serves an app from its own database, and sends every kind of request that the description allows and forbids.
check_description() {
    local home=$1 folder=$2 program=$3
    local database url key
    database=$(database_uri "$folder" description)
    run_job "$postgres/createdb" --host "$folder" --username postgres description
    export DATABASE_URL=$database PERENNIAL_HTTP_PORT=8199
    PERENNIAL_MASTER_KEY=$(head -c 32 /dev/urandom | base64)
    export PERENNIAL_MASTER_KEY PERENNIAL_APPSTORE_URL=http://127.0.0.1:9/ PERENNIAL_APPSTORE_SANDBOX_URL=http://127.0.0.1:9/
    "$program" migrate --no-roles >/dev/null
    "$program" app add --bundle-id com.example.app >/dev/null
    # No receiver listens there. One is removed, and the other one stays.
    for _ in 1 2; do "$program" webhook add --url http://127.0.0.1:9/ >/dev/null 2>&1; done
    key=$("$program" key create --scope admin --rate 0 2>/dev/null)
    url=http://127.0.0.1:$PERENNIAL_HTTP_PORT
    "$program" serve --log-level error &
    local server=$!
    for _ in $(seq 50); do
        curl --silent --fail --output /dev/null "$url/readyz" && break
        sleep 0.2
    done
    local status=0
    run_job "$home/bin/schemathesis" --config-file "$root/scripts/lib/schemathesis.toml" run "$url/openapi.yaml" \
        --header "Authorization: Bearer $key" || status=$?
    kill "$server" && wait "$server" || true
    return "$status"
}
