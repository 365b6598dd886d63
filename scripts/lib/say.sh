# shellcheck shell=bash
# The output of the scripts: progress on standard output, one sentence on standard error after a failure.

# Progress has the same form everywhere, so that a log is easy to read.
say() {
    printf '==> %s\n' "$*"
}

# The sentence names the problem and the action to take; nothing follows it.
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
