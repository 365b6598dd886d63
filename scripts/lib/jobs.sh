# shellcheck shell=bash
# Long-running children, each in a process group of its own: Ctrl-C reaches this shell alone, and the shell decides who
# stops when. A child in our own group would be hit by Ctrl-C first, or, in the background, ignore it.

# The last job started; `start_job` sets it.
job=

# Job control is on only for the start, which is when it makes the group.
start_job() {
    set -m
    "$@" </dev/null &
    job=$!
    set +m
}

# The status of the job is ours; a signal that we trap ends the wait.
wait_for_job() {
    local status=0
    wait "$1" || status=$?
    return "$status"
}

# For commands that take minutes: started, waited for, and stopped with us.
run_job() {
    local status=0
    start_job "$@"
    wait_for_job "$job" || status=$?
    job=
    return "$status"
}

# First a request, then, after so many seconds, no more requests. The request is an interrupt unless the caller knows
# better: swift passes an interrupt on to the compilers and tests it has started, and would orphan them otherwise.
stop_job() {
    local pid=$1 seconds=$2 request=${3:-INT} tries
    [[ -n $pid ]] || return 0
    kill -s "$request" -- "-$pid" 2>/dev/null || kill -s "$request" "$pid" 2>/dev/null || return 0
    for ((tries = seconds * 5; tries > 0; tries--)); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.2
    done
    kill -s KILL -- "-$pid" 2>/dev/null || kill -s KILL "$pid" 2>/dev/null || true
}

# A process number is reused sooner or later, so the command must look like the one we expect (a pattern).
is_running() {
    local pid=$1 pattern=$2 command
    [[ $pid =~ ^[0-9]+$ ]] || return 1
    command=$(ps -o args= -p "$pid" 2>/dev/null) || return 1
    # shellcheck disable=SC2053  # a pattern
    [[ $command == $pattern ]]
}
