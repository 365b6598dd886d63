# shellcheck shell=bash
# A private PostgreSQL: found, made, started and stopped without ever touching a system one.

# The folder of the server's programs; `require_postgres` sets it.
postgres=

# Debian keeps the server's programs off the PATH; the newest of several is taken.
postgres_binaries() {
    local found folder
    found=$(command -v initdb 2>/dev/null) && folder=$(dirname "$(readlink -f "$found")") || folder=
    if [[ -z $folder || ! -x $folder/pg_ctl ]]; then
        folder=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -t / -k 5 -n | tail -n 1) || true
    fi
    if [[ ! -x $folder/pg_ctl ]]; then
        folder=$(compgen -G '/opt/homebrew/opt/postgresql@*/bin' | sort | tail -n 1) || true
    fi
    [[ -x $folder/pg_ctl && -x $folder/initdb && -x $folder/postgres ]] || return 1
    echo "$folder"
}

# Older servers lack what the schema needs; better said now than by a failing migration.
require_postgres() {
    local version
    postgres=$(postgres_binaries) || fail "No PostgreSQL server programs found: install PostgreSQL 14 or newer and try again."
    version=$("$postgres/postgres" --version)
    if [[ ! $version =~ ([0-9]+) ]] || ((BASH_REMATCH[1] < 14)); then
        fail "$version is too old: install PostgreSQL 14 or newer and try again."
    fi
}

# PostgreSQL refuses to run as root, so root lends it the least account there is.
database_account() {
    if id -u postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
}

# The account may not be allowed where we stand, so every command starts from the root folder.
as_database_account() (
    cd /
    if [[ $(id -u) -ne 0 ]]; then
        "$@"
    elif command -v setpriv >/dev/null 2>&1; then
        setpriv --reuid="$(database_account)" --regid="$(id -g "$(database_account)")" --clear-groups -- "$@"
    elif command -v runuser >/dev/null 2>&1; then
        runuser -u "$(database_account)" -- "$@"
    else
        fail "PostgreSQL does not run as root, and neither setpriv nor runuser is here: run this as an ordinary user."
    fi
)

# Whoever runs the server must own its folder, and reach it.
give_to_database_account() {
    if [[ $(id -u) -eq 0 ]]; then chown "$(database_account)" "$1"; fi
    as_database_account test -w "$1"
}

# The same sort order on every machine; a C library without C.UTF-8 has plain C.
cluster_locale() {
    if locale -a 2>/dev/null | grep -qiE '^C\.utf-?8$'; then echo C.UTF-8; else echo C; fi
}

# Arguments: the data folder, the socket folder, lines for postgresql.conf, and further initdb options.
create_cluster() {
    local data=$1 sockets=$2 settings=$3 log
    shift 3
    log=$(mktemp)
    if ! as_database_account "$postgres/initdb" --pgdata="$data" --username=postgres --auth=trust --encoding=UTF8 \
        --locale="$(cluster_locale)" "$@" >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        fail "initdb could not make a cluster in $data: see the lines above."
    fi
    rm -f "$log"
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$sockets'"
        echo "unix_socket_permissions = 0700"
        echo "$settings"
    } >>"$data/postgresql.conf"
}

# A number left in the lock file by a crash may belong to a stranger by now; then the lock is nobody's.
remove_stale_lock() {
    local data=$1 sockets=$2 pid
    [[ -f $data/postmaster.pid ]] || return 0
    pid=$(head -n 1 "$data/postmaster.pid")
    if ! is_running "$pid" "*postgres*"; then
        rm -f "$data/postmaster.pid" "$sockets"/.s.PGSQL.5432 "$sockets"/.s.PGSQL.5432.lock
    fi
}

# A server that still runs from an earlier, killed run is simply used.
start_cluster() {
    local data=$1 sockets=$2 log=$3
    remove_stale_lock "$data" "$sockets"
    if as_database_account "$postgres/pg_ctl" status --pgdata="$data" >/dev/null 2>&1; then return 0; fi
    if ! as_database_account "$postgres/pg_ctl" start --wait --timeout=120 --pgdata="$data" --log="$log" >/dev/null 2>&1; then
        tail -n 20 "$log" >&2 || true
        fail "PostgreSQL did not start in $data: see the lines above and $log."
    fi
}

# Modes as pg_ctl has them: "fast" keeps everything, "immediate" is for what is thrown away anyway.
stop_cluster() {
    local data=$1 mode=$2
    as_database_account "$postgres/pg_ctl" stop --wait --timeout=60 --pgdata="$data" --mode="$mode" >/dev/null 2>&1 || true
}

# A URI takes no bare slash in the place of a host.
percent_encode() {
    local LC_ALL=C text=$1 index character
    for ((index = 0; index < ${#text}; index++)); do
        character=${text:index:1}
        case $character in
            [a-zA-Z0-9._~-]) printf '%s' "$character" ;;
            *) printf '%%%02X' "'$character" ;;
        esac
    done
}

# The one form in which every program here is told where the database is.
database_uri() {
    printf 'postgresql://postgres@%s/%s' "$(percent_encode "$1")" "$2"
}

# A socket's path has about a hundred bytes, and a quote or a comma in it would need an escape of its own.
is_fit_for_sockets() {
    [[ ${#1} -le 80 && $1 =~ ^[A-Za-z0-9/._@+-]+$ ]]
}
