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

# Without capabilities, and without a way to get some.
as_ordinary_user() (
    cd "$ordinary_home"
    export HOME=$ordinary_home TMPDIR=$ordinary_home/tmp
    if [[ $(id -u) -ne 0 ]]; then exec "$@"; fi
    command -v setpriv >/dev/null 2>&1 || fail "setpriv is missing: install util-linux and try again."
    drop=(setpriv "--reuid=$(ordinary_account)" "--regid=$(id -g "$(ordinary_account)")" --clear-groups --inh-caps=-all
        --bounding-set=-all --no-new-privs)
    "${drop[@]}" test -x "$1" ||
        fail "$(ordinary_account) cannot run $1: put the checkout where other accounts can read it and try again."
    exec "${drop[@]}" "$@"
)
