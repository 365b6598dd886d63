# shellcheck shell=bash
# Prometheus's own checker of metrics and rules, for the tests that ask it for a second opinion.

unpack_promtool() {
    (cd "$1" && rm -f prometheus_*.deb && apt-get download prometheus && dpkg -x prometheus_*.deb .) >"$1/download.log" 2>&1
}

# Debian's package brings a server that starts by itself and nobody asked for, so it is only unpacked, never installed.
find_promtool() {
    local folder=$1
    PERENNIAL_TEST_PROMTOOL=$(command -v promtool 2>/dev/null) || PERENNIAL_TEST_PROMTOOL=$folder/usr/bin/promtool
    if [[ ! -x $PERENNIAL_TEST_PROMTOOL ]]; then
        command -v apt-get >/dev/null 2>&1 ||
            fail "No promtool on the PATH: install Prometheus (https://prometheus.io/download), or leave out --all."
        say "Unpacking promtool from Debian's prometheus"
        mkdir -p "$folder"
        # A machine that lacks nothing else has not asked yet which packages there are.
        unpack_promtool "$folder" ||
            { as_root apt-get update >"$folder/update.log" 2>&1 && unpack_promtool "$folder"; } ||
            fail "promtool cannot be unpacked: see $folder/download.log, or put a promtool on the PATH."
    fi
    export PERENNIAL_TEST_PROMTOOL
}
