# shellcheck shell=bash
# Runs commands as an account without rights, with a home of its own: what a stranger's shell does.

# The account's home; `make_ordinary_home` sets it.
ordinary_home=

# Root takes the account that every system has for those without rights. All others are ordinary themselves.
ordinary_account() {
    if [[ $(id -u) -eq 0 ]]; then echo nobody; else id -un; fi
}

# In /tmp, because the caller's own temporary folder may be closed to others, and a socket's path has to be short.
make_ordinary_home() {
    ordinary_home=$(mktemp -d /tmp/perennial-user.XXXXXX)
    mkdir "$ordinary_home/tmp"
    if [[ $(id -u) -eq 0 ]]; then chown -R "$(ordinary_account)" "$ordinary_home"; fi
}

remove_ordinary_home() {
    if [[ -n $ordinary_home ]]; then rm -rf "$ordinary_home"; fi
}

# The outermost folder above a path that others cannot enter; nothing where they can enter all.
closed_folder() {
    local path=$1 closed=
    while [[ $path != / ]]; do
        if [[ ! $(stat -c %A "$path") =~ [xt]$ ]]; then closed=$path; fi
        path=$(dirname "$path")
    done
    echo "$closed"
}

# Without capabilities, and without a way to get some. A checkout in a folder that is closed to others is shown to this
# account alone: in a mount namespace of its own, where an open folder stands in place of the closed one.
as_ordinary_user() (
    cd "$ordinary_home"
    export HOME=$ordinary_home TMPDIR=$ordinary_home/tmp
    if [[ $(id -u) -ne 0 ]]; then exec "$@"; fi
    command -v setpriv >/dev/null 2>&1 || fail "setpriv is missing: install util-linux and try again."
    drop=(setpriv "--reuid=$(ordinary_account)" "--regid=$(id -g "$(ordinary_account)")" --clear-groups --inh-caps=-all
        --bounding-set=-all --no-new-privs)
    closed=$(closed_folder "$root")
    if [[ -z $closed ]]; then exec "${drop[@]}" "$@"; fi
    mkdir -p "$ordinary_home/checkout"
    # shellcheck disable=SC2016  # the inner shell expands them
    exec unshare --mount --propagation private bash -c '
        mount --bind "$1" "$2" && mount -t tmpfs -o mode=755 closed "$3" && mkdir -p "$1" && mount --bind "$2" "$1" || {
            echo "error: $3 is closed to other accounts: put the checkout where they can read it." >&2
            exit 1
        }
        cd "$4" && shift 4 && exec "$@"' bash "$root" "$ordinary_home/checkout" "$closed" "$ordinary_home" "${drop[@]}" "$@"
)
