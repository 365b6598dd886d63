# shellcheck shell=bash
# The database of scripts/run: a given one, or a private cluster that persists between runs. The script sets `root` and
# `state`, and postgres.sh sets `postgres`.
# shellcheck disable=SC2154

# 1 if this script must stop the cluster.
database_is_private=0

# A short name that is the same for the same checkout.
checkout_number() {
    printf '%s' "$root" | cksum | cut -d ' ' -f 1
}

# A checkout of root is often closed to the server's account, so root keeps the cluster where that account has access.
cluster_folder() {
    if [[ $(id -u) -eq 0 ]]; then echo "/var/lib/perennial-dev-$(checkout_number)"; else echo "$state/postgres"; fi
}

# A long or odd checkout path does not work for a socket. This then uses a short separate folder.
socket_folder() {
    local folder
    folder=$(cluster_folder)
    if ! is_fit_for_sockets "$folder"; then
        folder=/tmp/perennial-$(id -u)-$(checkout_number)
        (umask 077 && mkdir -p "$folder")
        [[ -O $folder && ! -L $folder ]] || fail "$folder belongs to another account: remove it and try again."
    fi
    echo "$folder"
}

# The master key seals the secrets in a cluster; without the key they are unreadable. The data may matter, so this
# deletes nothing.
set_aside_unreadable_cluster() {
    local folder aside
    folder=$(cluster_folder)
    if [[ -n ${DATABASE_URL:-} || -s $state/master-key || ! -d $folder/data ]]; then return 0; fi
    aside=$folder.$(date +%Y%m%d%H%M%S)
    require_postgres
    stop_cluster "$folder/data" fast
    mv "$folder" "$aside"
    say "The master key of an earlier demo is gone with its .perennial folder, so the demo begins anew." \
        "The earlier database is kept in $aside: remove that folder unless you want it"
}

# Creates the cluster completely or not at all, because a later run could mistake a partial data folder for a good one.
make_persistent_cluster() {
    local folder=$1 sockets=$2
    if [[ -s $folder/data/PG_VERSION && -f $folder/complete ]]; then return 0; fi
    say "Creating a private PostgreSQL cluster in $folder ($("$postgres/postgres" --version))"
    mkdir -p "$folder"
    chmod 700 "$folder"
    give_to_database_account "$folder" || fail "$(database_account) cannot write to $folder: check the folders above it."
    rm -rf "$folder/data"
    create_cluster "$folder/data" "$sockets" ""
    touch "$folder/complete"
}

# CREATE DATABASE has no IF NOT EXISTS.
make_database() {
    local uri=$1 found
    found=$("$postgres/psql" --no-psqlrc -qAt -d "$uri" -c "SELECT 1 FROM pg_database WHERE datname = 'perennial'") ||
        fail "The private PostgreSQL does not answer: check $(cluster_folder)/log."
    if [[ $found != 1 ]]; then
        "$postgres/psql" --no-psqlrc -q -d "$uri" -c "CREATE DATABASE perennial" ||
            fail "The database perennial could not be created: see the lines above."
    fi
}

# A version may not know the schema of an older one. The demo then begins anew, and the old database keeps its data.
migrate_database() {
    local log=$state/migrate.log aside
    if "$perennial" migrate 2>"$log"; then
        cat "$log" >&2
        return 0
    fi
    if [[ $database_is_private -ne 1 ]] || ! grep -q "Another version of Perennial made the schema" "$log"; then
        cat "$log" >&2
        return 1
    fi
    aside=perennial_$(date +%Y%m%d%H%M%S)
    say "Another version made the schema of the demo database: it is renamed to $aside, and a new one is created"
    "$postgres/psql" --no-psqlrc -q -d "$(database_uri "$(socket_folder)" postgres)" \
        -c "ALTER DATABASE perennial RENAME TO $aside" || return 1
    make_database "$(database_uri "$(socket_folder)" postgres)"
    "$perennial" migrate
}

# For a given DATABASE_URL, this starts and stops nothing.
provide_database() {
    local folder sockets
    if [[ -n ${DATABASE_URL:-} ]]; then
        say "Using the database of DATABASE_URL"
        return 0
    fi
    require_postgres
    folder=$(cluster_folder)
    sockets=$(socket_folder)
    make_persistent_cluster "$folder" "$sockets"
    say "Starting the private PostgreSQL in $folder"
    database_is_private=1
    start_cluster "$folder/data" "$sockets" "$folder/log"
    make_database "$(database_uri "$sockets" postgres)"
    DATABASE_URL=$(database_uri "$sockets" perennial)
    export DATABASE_URL
}

# A fast stop ends open sessions and writes all data.
stop_private_database() {
    if [[ $database_is_private -eq 1 ]]; then stop_cluster "$(cluster_folder)/data" fast; fi
}
