# shellcheck shell=bash
# Prometheus's own checker of metrics and rules, for the tests that ask it for a second opinion.

# Debian's package brings a server that starts by itself and nobody asked for, so it is only unpacked, never installed.
find_promtool() {
    local folder=$1
    PERENNIAL_TEST_PROMTOOL=$(command -v promtool 2>/dev/null) || PERENNIAL_TEST_PROMTOOL=$folder/usr/bin/promtool
    if [[ ! -x $PERENNIAL_TEST_PROMTOOL ]]; then
        command -v apt-get >/dev/null 2>&1 ||
            fail "No promtool on the PATH: install Prometheus (https://prometheus.io/download), or leave out --all."
        say "Unpacking promtool from Debian's prometheus"
        mkdir -p "$folder"
        (cd "$folder" && apt-get download prometheus >download.log 2>&1 && dpkg -x prometheus_*.deb .) ||
            fail "promtool cannot be unpacked: see $folder/download.log, or put a promtool on the PATH."
    fi
    export PERENNIAL_TEST_PROMTOOL
}
