# shellcheck shell=bash
# Prometheus's checker of metrics and rules, as a second opinion in the tests.

unpack_promtool() {
    (cd "$1" && rm -f prometheus_*.deb && apt-get download prometheus && dpkg -x prometheus_*.deb .) >"$1/download.log" 2>&1
}

# Debian's package has a server that starts automatically, so this only unpacks the package and never installs it.
find_promtool() {
    local folder=$1
    PERENNIAL_TEST_PROMTOOL=$(command -v promtool 2>/dev/null) || PERENNIAL_TEST_PROMTOOL=$folder/usr/bin/promtool
    if [[ ! -x $PERENNIAL_TEST_PROMTOOL ]]; then
        command -v apt-get >/dev/null 2>&1 ||
            fail "promtool is not on the PATH: install Prometheus (https://prometheus.io/download), or leave out --all."
        say "Unpacking promtool from Debian's prometheus"
        mkdir -p "$folder"
        # On a machine with all other packages, the package lists may not be up to date yet.
        unpack_promtool "$folder" ||
            { as_root apt-get update >"$folder/update.log" 2>&1 && unpack_promtool "$folder"; } ||
            fail "promtool cannot be unpacked: see $folder/download.log, or put a promtool on the PATH."
    fi
    export PERENNIAL_TEST_PROMTOOL
}
