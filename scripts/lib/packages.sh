# shellcheck shell=bash
# The prerequisites of a build: system packages and a Swift toolchain.

# The pinned packages need 6.2; an older toolchain would fail with an obscure message.
require_swift() {
    local version
    command -v swift >/dev/null 2>&1 ||
        fail "No swift on the PATH: install Swift 6.2 or newer from https://www.swift.org/install and try again."
    version=$(swift --version 2>/dev/null) || true
    [[ $version =~ Swift\ version\ ([0-9]+)\.([0-9]+) ]] ||
        fail "'swift --version' does not work here: install Swift 6.2 or newer from https://www.swift.org/install."
    if ((BASH_REMATCH[1] < 6 || (BASH_REMATCH[1] == 6 && BASH_REMATCH[2] < 2))); then
        fail "Swift ${BASH_REMATCH[1]}.${BASH_REMATCH[2]} is too old: install 6.2 or newer from https://www.swift.org/install."
    fi
}

# A header may come from a package, from Homebrew or from a local build, so check the library, not a package.
has_library() {
    command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$1"
}

# Lists only missing packages, so that a prepared machine needs neither root nor a network.
missing_debian_packages() {
    local header
    command -v git >/dev/null 2>&1 || echo git
    command -v curl >/dev/null 2>&1 || echo curl
    command -v pkg-config >/dev/null 2>&1 || echo pkg-config
    has_library libpq || echo libpq-dev
    has_library zlib || echo zlib1g-dev
    header=$(compgen -G '/usr/include/c++/*/cstdlib') || true
    [[ -n $header ]] || echo g++
    if [[ $1 == server ]]; then
        postgres_binaries >/dev/null || echo postgresql
    fi
    if [[ $1 == browser || -n ${PERENNIAL_TEST_ALL:-} ]]; then
        command -v chromium >/dev/null 2>&1 || echo chromium
        command -v chromedriver >/dev/null 2>&1 || echo chromium-driver
        command -v python3 >/dev/null 2>&1 || echo python3
        [[ -x /usr/sbin/pgbouncer ]] || command -v pgbouncer >/dev/null 2>&1 || echo pgbouncer
        command -v dpkg-shlibdeps >/dev/null 2>&1 || echo dpkg-dev
        command -v lintian >/dev/null 2>&1 || echo lintian
        [[ -x /usr/sbin/debootstrap ]] || echo debootstrap
    fi
}

# Debian would start its own cluster on port 5432. Perennial does not need it, so this prevents it for one installation.
hold_back_system_cluster() {
    as_root mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" | as_root tee /etc/postgresql-common/createcluster.d/perennial.conf >/dev/null
}

# Removes the setting after the installation, so that the machine's own configuration applies again.
release_system_cluster() {
    as_root rm -f /etc/postgresql-common/createcluster.d/perennial.conf
}

# The same for PgBouncer, whose package would start a system-wide instance on port 6432. An existing policy belongs to
# the machine and stays.
hold_back_system_pooler() {
    [[ ! -e /usr/sbin/policy-rc.d ]] || return 0
    printf '#!/bin/sh\n# perennial: nothing is started by this installation\nexit 101\n' |
        as_root tee /usr/sbin/policy-rc.d >/dev/null
    as_root chmod 755 /usr/sbin/policy-rc.d
}

release_system_pooler() {
    if grep -q '^# perennial:' /usr/sbin/policy-rc.d 2>/dev/null; then as_root rm -f /usr/sbin/policy-rc.d; fi
}

# Runs the command directly as root, and through sudo otherwise.
as_root() {
    if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

# Installs only missing packages, and prints their names before it changes anything.
install_with_apt() {
    local log status=0
    if [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null 2>&1; then
        fail "Packages are missing, and so is sudo: ask an administrator to run 'apt-get install $*'."
    fi
    say "Installing $* with apt-get"
    log=$(mktemp)
    if [[ " $* " == *" postgresql "* ]]; then hold_back_system_cluster; fi
    if [[ " $* " == *" pgbouncer "* ]]; then hold_back_system_pooler; fi
    {
        as_root apt-get update &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
    } >"$log" 2>&1 </dev/null || status=$?
    if [[ " $* " == *" postgresql "* ]]; then release_system_cluster; fi
    if [[ " $* " == *" pgbouncer "* ]]; then release_system_pooler; fi
    if [[ $status -ne 0 ]]; then
        tail -n 15 "$log" >&2
        rm -f "$log"
        fail "apt-get could not install $*: see the lines above, then install them manually and try again."
    fi
    rm -f "$log"
}

# Homebrew asks before it changes a Mac, so this only names the missing packages.
require_on_macos() {
    has_library zlib || xcrun --show-sdk-path >/dev/null 2>&1 ||
        fail "Developer tools are missing: run 'xcode-select --install' and try again."
    command -v brew >/dev/null 2>&1 ||
        fail "Homebrew is needed for libpq and PostgreSQL: see https://brew.sh, then 'brew install pkgconf libpq postgresql@17'."
    PKG_CONFIG_PATH="$(brew --prefix)/opt/libpq/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
    export PKG_CONFIG_PATH
    has_library libpq || fail "libpq or pkg-config is missing: run 'brew install pkgconf libpq' and try again."
    if [[ $1 == server ]] && ! postgres_binaries >/dev/null; then
        fail "The PostgreSQL server is missing: run 'brew install postgresql@17' and try again."
    fi
}

# The entry for all scripts. "server" also installs PostgreSQL, "browser" a Chromium, "client" only the build's
# packages.
install_missing_packages() {
    local missing
    if [[ $(uname -s) == Darwin ]]; then
        require_on_macos "$1"
        return
    fi
    missing=$(missing_debian_packages "$1")
    [[ -n $missing ]] || return 0
    command -v apt-get >/dev/null 2>&1 ||
        fail "Missing packages (Debian names): ${missing//$'\n'/ }. Install them with this machine's package manager."
    # shellcheck disable=SC2086  # one package a word
    install_with_apt $missing
    missing=$(missing_debian_packages "$1")
    [[ -z $missing ]] || fail "Still missing after apt-get: ${missing//$'\n'/ }. Install them manually and try again."
}
