# shellcheck shell=bash
# How the scripts talk: progress on standard output, one sentence on standard error when something is wrong.

# Progress has one shape everywhere, so that a log reads like a story.
say() {
    printf '==> %s\n' "$*"
}

# The sentence says what is wrong and what to do; nothing follows it.
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
