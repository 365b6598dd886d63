# shellcheck shell=bash
# Finds, creates, starts and stops a private PostgreSQL, and never touches a system one.

# The folder of the server's programs; `require_postgres` sets it.
postgres=

# Debian keeps the server's programs off the PATH. If there are several versions, the newest one counts.
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

# Older servers lack features that the schema needs. An early message is better than a failing migration.
require_postgres() {
    local version
    postgres=$(postgres_binaries) || fail "No PostgreSQL server programs found: install PostgreSQL 14 or newer and try again."
    version=$("$postgres/postgres" --version)
    if [[ ! $version =~ ([0-9]+) ]] || ((BASH_REMATCH[1] < 14)); then
        fail "$version is too old: install PostgreSQL 14 or newer and try again."
    fi
}

# PostgreSQL refuses to run as root, so root uses an unprivileged account.
database_account() {
    if id -u postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
}

# The account may lack access to the current folder, so every command starts in the root folder.
as_database_account() (
    cd /
    if [[ $(id -u) -ne 0 ]]; then
        "$@"
    elif command -v setpriv >/dev/null 2>&1; then
        setpriv --reuid="$(database_account)" --regid="$(id -g "$(database_account)")" --clear-groups -- "$@"
    elif command -v runuser >/dev/null 2>&1; then
        runuser -u "$(database_account)" -- "$@"
    else
        fail "PostgreSQL does not run as root, and setpriv and runuser are missing: run this as an ordinary user."
    fi
)

# The account that runs the server must own its folder and be able to reach it.
give_to_database_account() {
    if [[ $(id -u) -eq 0 ]]; then chown "$(database_account)" "$1"; fi
    as_database_account test -w "$1"
}

# The same sort order on every machine. A C library without C.UTF-8 has plain C.
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
        fail "initdb could not create a cluster in $data: see the lines above."
    fi
    rm -f "$log"
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$sockets'"
        echo "unix_socket_permissions = 0700"
        echo "$settings"
    } >>"$data/postgresql.conf"
}

# After a crash, the process id in the lock file may belong to another program by now. The lock is then stale.
remove_stale_lock() {
    local data=$1 sockets=$2 pid
    [[ -f $data/postmaster.pid ]] || return 0
    pid=$(head -n 1 "$data/postmaster.pid")
    if ! is_running "$pid" "*postgres*"; then
        rm -f "$data/postmaster.pid" "$sockets"/.s.PGSQL.5432 "$sockets"/.s.PGSQL.5432.lock
    fi
}

# If a server of an earlier, killed run is still running, use it.
start_cluster() {
    local data=$1 sockets=$2 log=$3
    remove_stale_lock "$data" "$sockets"
    if as_database_account "$postgres/pg_ctl" status --pgdata="$data" >/dev/null 2>&1; then return 0; fi
    if ! as_database_account "$postgres/pg_ctl" start --wait --timeout=120 --pgdata="$data" --log="$log" >/dev/null 2>&1; then
        tail -n 20 "$log" >&2 || true
        fail "PostgreSQL did not start in $data: see the lines above and $log."
    fi
}

# The modes of pg_ctl: "fast" keeps all data, "immediate" is for clusters that are deleted anyway.
stop_cluster() {
    local data=$1 mode=$2
    as_database_account "$postgres/pg_ctl" stop --wait --timeout=60 --pgdata="$data" --mode="$mode" >/dev/null 2>&1 || true
}

# A URI allows no bare slash in the host.
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

# The form of the database address for every program here.
database_uri() {
    printf 'postgresql://postgres@%s/%s' "$(percent_encode "$1")" "$2"
}

# A socket's path has at most about a hundred bytes, and a quote or a comma in it would need escaping.
is_fit_for_sockets() {
    [[ ${#1} -le 80 && $1 =~ ^[A-Za-z0-9/._@+-]+$ ]]
}
