#!/bin/bash
# A real Slurm cluster of four nodes on this host, on the loopback device alone, for tests.
#   cluster.sh up DIR         starts munged, slurmctld and four slurmd, and waits until all nodes are idle
#   cluster.sh down DIR       ends them, by their process ids, and waits for that
#   cluster.sh kill DIR NODE  kills one node with all that runs on it, as a power cut does
set -eu
verb=$1 dir=$2 here=$(cd "$(dirname "$0")" && pwd)

up() {
    for attempt in 1 2 3; do
        start $((20000 + ($$ + attempt * 397) % 1200 * 10))
        wait_until_idle && return
        # Another program may have the ports: the daemons write that to their logs alone.
        tail -n 5 "$dir"/log/*.log >&2
        down
        rm -r "$dir"
    done
    return 1
}

start() {
    mkdir -p "$dir"/{state,log,mlog,spool}
    chmod 755 "$dir" "$dir/mlog"
    # Two tests, or two users, may each have a cluster.
    sed "s#@DIR@#$dir#g; s#@CONTROL@#$1#; s#@FIRST@#$(($1 + 1))#; s#@LAST@#$(($1 + 4))#" \
        "$here/slurm.conf.in" >"$dir/slurm.conf"
    head -c 128 /dev/urandom >"$dir/munge.key"
    chmod 400 "$dir/munge.key"
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
        --log-file="$dir/mlog/munged.log" --seed-file="$dir/munge.seed" --num-threads=2
    slurmctld -c -f "$dir/slurm.conf" || true
    for node in n1 n2 n3 n4; do
        mkdir -p "$dir/spool/$node"
        slurmd -N $node -f "$dir/slurm.conf" || true
    done
}

# True if the four nodes are idle within half a minute.
wait_until_idle() {
    end=$((SECONDS + 30))
    until test "$(SLURM_CONF=$dir/slurm.conf timeout 10 sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" = 4; do
        test $SECONDS -lt $end || return 1
        sleep 0.02
    done
}

down() {
    daemons=
    for file in "$dir"/slurmd-*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
        test ! -s "$file" || daemons="$daemons $(cat "$file")"
    done
    # shellcheck disable=SC2086
    kill $daemons 2>/dev/null || true
    # They write to the directory until they have ended.
    for daemon in $daemons; do
        i=0
        while kill -0 "$daemon" 2>/dev/null && test $i -lt 500; do
            i=$((i + 1))
            sleep 0.01
        done
        kill -9 "$daemon" 2>/dev/null || true
    done
}

# The processes below those that were named, and these themselves.
tree() {
    for process in "$@"; do
        echo "$process"
        # shellcheck disable=SC2046
        tree $(pgrep -P "$process" || true)
    done
}

kill_node() {
    doomed=$(cat "$dir/slurmd-$1.pid")
    for step in $(pgrep slurmstepd || true); do
        for child in $(pgrep -P "$step" || true); do
            variables=$(tr '\0' '\n' <"/proc/$child/environ" 2>/dev/null || true)
            case "$variables" in
            *"SLURMD_NODENAME=$1"*"SLURM_CONF=$dir/"* | *"SLURM_CONF=$dir/"*"SLURMD_NODENAME=$1"*) doomed="$doomed $(tree "$step")" ;;
            esac
        done
    done
    # shellcheck disable=SC2086
    kill -9 $doomed 2>/dev/null || true
}

case $verb in
up) up ;;
down) down ;;
kill) kill_node "$3" ;;
esac
