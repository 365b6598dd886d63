# shellcheck shell=bash
# Walks both Compose files on a real engine, where one runs: the demo, and the file that operators copy. scripts/test sources
# this file. WALK_IMAGE names an image that is built already.
# shellcheck disable=SC2154

# The project of the walk; a stop removes it with its data.
compose_project=
compose_files=()

compose() {
    docker compose --project-name "$compose_project" "${compose_files[@]}" "$@"
}

# Everything of the walk, with its data.
end_compose() {
    if [[ -n $compose_project ]]; then compose down --volumes --timeout 45 >/dev/null 2>&1 || true; fi
    compose_project=
}

compose_fails() {
    compose ps --all >&2 || true
    compose logs --tail 15 >&2 || true
    end_compose
    fail "$1: see the lines above."
}

# The services are up, and those with a health check are well.
compose_up() {
    compose up --detach --wait --wait-timeout 300 "$@" >"$walk_log" 2>&1 || { tail -n 15 "$walk_log" >&2; compose_fails "docker compose up $* failed"; }
}

# The workers that the database knows as alive; a stopped one has said so.
expect_workers() {
    local wanted=$1 tries found
    for ((tries = 60; tries > 0; tries--)); do
        found=$(compose exec -T postgres psql --username perennial --dbname perennial -qAt \
            -c "SELECT count(*) FROM perennial.worker_now" 2>/dev/null) || found=none
        [[ $found == "$wanted" ]] && return 0
        sleep 1
    done
    compose_fails "There are $found workers instead of $wanted"
}

# A lookup in the container of the server, so that it needs no port of this machine.
look_up_in_compose() {
    local key=$1 app=$2 customer=$3 words=$4 answer
    answer=$(compose exec -T serve curl --fail --silent --show-error --header "Authorization: Bearer $key" \
        "http://127.0.0.1:8080/v1/apps/$app/customers/$customer/entitlements") || compose_fails "The lookup failed"
    [[ $answer == *"$words"* ]] || compose_fails "The lookup does not say $words but $answer"
}

# What both files have to stand.
stress_compose() {
    local key=$1 app=$2 customer=$3 words=$4
    look_up_in_compose "$@"
    say "  restart"
    compose restart serve worker >/dev/null 2>&1 || compose_fails "The restart failed"
    compose_up
    look_up_in_compose "$@"
    say "  three workers"
    compose_up --scale worker=3
    expect_workers 3
    compose exec -T serve curl --fail --silent http://worker:9464/metrics | grep -q '^perennial_build_info' ||
        compose_fails "A worker's metrics are out of reach"
    say "  a wrong password"
    if compose run --rm --no-deps -T -e PGPASSFILE=/nowhere -e PGPASSWORD=wrong migrate >"$walk_log" 2>&1; then
        compose_fails "A wrong password was taken"
    fi
    grep -q 'password authentication failed.*PGPASSWORD' "$walk_log" || { cat "$walk_log" >&2; compose_fails "The message is another one"; }
    say "  down, and up again with its data"
    compose down --timeout 45 >/dev/null 2>&1 || compose_fails "The stop failed"
    compose_up
    look_up_in_compose "$key" "$app" "$customer" "$words"
}

walk_demo() {
    local key
    say "Walking docker-compose.yml with its demo"
    compose_project=perennial-walk-demo
    # The image is there; `secrets` builds it otherwise.
    printf 'services:\n  secrets:\n    build: !reset null\n    pull_policy: never\n' >"$walk_folder/built.yml"
    compose_files=(--file "$root/docker-compose.yml" --file "$root/docker-compose.override.yml" --file "$walk_folder/built.yml"
        --project-directory "$root")
    compose_up
    key=$(compose exec -T serve cat /var/lib/perennial/api-key) || compose_fails "The demo has no key"
    stress_compose "$key" com.example.journal c1000048 '"granted":true'
    end_compose
}

walk_production() {
    local key
    say "Walking docs/examples/compose.production.yml"
    compose_project=perennial-walk-production
    compose_files=(--file "$walk_folder/compose.yml")
    export PERENNIAL_IMAGE=perennial:0.1.0
    cp "$root/docs/examples/compose.production.yml" "$walk_folder/compose.yml"
    # As the first lines of the file say.
    mkdir "$walk_folder/secrets" "$walk_folder/backups"
    head -c 32 /dev/urandom | base64 >"$walk_folder/secrets/master-key"
    head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$walk_folder/secrets/database-password"
    printf '*:*:*:*:%s\n' "$(cat "$walk_folder/secrets/database-password")" >"$walk_folder/secrets/pgpass"
    as_root chown 10001 "$walk_folder/secrets/master-key" "$walk_folder/secrets/pgpass" "$walk_folder/backups"
    as_root chmod 600 "$walk_folder"/secrets/*
    if compose run --rm -T doctor >"$walk_log" 2>&1; then compose_fails "doctor finds a schema in an empty database"; fi
    grep -q 'WRONG *schema' "$walk_log" || { cat "$walk_log" >&2; compose_fails "doctor does not say that the schema is missing"; }
    compose_up
    printf '0123456789abcdef0123456789abcdef' | compose exec -T serve perennial app add --bundle-id com.example.app \
        --shared-secret-file - >/dev/null || compose_fails "No app can be added"
    key=$(compose exec -T serve perennial key create --scope read 2>/dev/null | awk 'NF { key = $NF } END { print key }')
    stress_compose "$key" com.example.app stranger '"entitlements":[]'
    compose exec -T serve sh -c 'touch /usr/local/bin/file' 2>/dev/null && compose_fails "A container can write its root"
    compose port --index 1 worker 9464 | grep -q '^127.0.0.1:94' || compose_fails "No port of this machine leads to a worker"
    [[ -n $(find "$walk_folder/backups" -name '*.dump' -size +10k) ]] || compose_fails "There is no backup"
    end_compose
}

# The entry. The caller sets `root`; without an engine this says so and walks nothing.
walk_compose() {
    if ! docker compose version >/dev/null 2>&1 || ! docker info >/dev/null 2>&1; then
        say "No container engine runs here, so docker-compose.yml and docs/examples/compose.production.yml were not walked"
        return 0
    fi
    walk_folder=$(mktemp -d /tmp/perennial-compose.XXXXXX)
    walk_log=$walk_folder/log
    if [[ -n ${WALK_IMAGE:-} ]]; then
        docker tag "$WALK_IMAGE" perennial:0.1.0
    else
        say "Building the image"
        docker build --quiet --tag perennial:0.1.0 "$root" >/dev/null || fail "The image cannot be built: see the lines above."
    fi
    walk_demo
    walk_production
    as_root rm -rf "$walk_folder"
    say "Both Compose files were walked: up, restart, three workers, a wrong password, down and up with the data."
}
