# shellcheck shell=bash
# Long-running children, each in its own process group. So Ctrl-C reaches only this shell, and the shell decides the
# order of the stops. Ctrl-C would hit a child in the same group first, or the child would ignore it in the background.

# The last job started; `start_job` sets it.
job=

# Job control is on only during the start, which creates the group.
start_job() {
    set -m
    "$@" </dev/null &
    job=$!
    set +m
}

# Returns the status of the job. A trapped signal ends the wait.
wait_for_job() {
    local status=0
    wait "$1" || status=$?
    return "$status"
}

# Runs a command that takes minutes. It stops together with this script.
run_job() {
    local status=0
    start_job "$@"
    wait_for_job "$job" || status=$?
    job=
    return "$status"
}

# Sends a signal first, and kills the job after the given seconds. The default signal is an interrupt: swift passes it
# on to its compilers and tests, and would orphan them with another signal.
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

# The system reuses process ids, so the command must match the expected pattern.
is_running() {
    local pid=$1 pattern=$2 command
    [[ $pid =~ ^[0-9]+$ ]] || return 1
    command=$(ps -o args= -p "$pid" 2>/dev/null) || return 1
    # shellcheck disable=SC2053  # a pattern
    [[ $command == $pattern ]]
}
