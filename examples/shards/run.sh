# sh run.sh: four analyses that share a pool of two slots, with the `jobman` and `python3` on PATH, in a scratch directory.
#
# Every command is printed as a reader would type it, and then run. Ends with status 1 if anything is not as told.
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/jobman-shards.XXXXXX")
export JOBMAN_STATE_DIR="$scratch/state"
mkdir "$scratch/work"
cp "$examples"/*.py "$examples/jobman.yml" "$scratch/work"
cd "$scratch/work"

leave() {
    status=$?
    # Only a demonstration that failed has jobs left.
    for job in ${prepare:-} ${shards:-}; do jobman cancel "$job" >/dev/null 2>&1 || true; done
    cd /
    rm -rf "$scratch"
    exit "$status"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

say() { printf '\n# %s\n' "$1"; }
run() {
    printf '$ %s\n' "$1"
    eval "$1" 2>&1
}
expect() {
    if [ "$2" != "$3" ]; then
        printf 'not as told: %s is "%s" instead of "%s"\n' "$1" "$2" "$3" >&2
        exit 1
    fi
}
# glimpse JOB PHASE: wait until a job is in a phase; on a busy machine it may have passed through it unseen.
glimpse() {
    until jobman status "$1" | grep -q "\($2\|completed\)"; do sleep 0.05; done
}
# Processes that were started with our state directory: supervisors, and what they run.
left() {
    (unset JOBMAN_STATE_DIR && grep -lsz "^JOBMAN_STATE_DIR=$scratch/state\$" /proc/[0-9]*/environ) || true
}
# field JOB EXPRESSION: a value out of the JSON document on a job.
field() { jobman show --json "$1" | python3 -c "import json, sys; data = json.load(sys.stdin)['data']; print($2)"; }

say 'A pool of two slots for the analyses, in a store with four.'
run 'cat jobman.yml'
run 'jobman config apply --config jobman.yml'

say 'The preparation, and four analyses that wait for it; exit code 1 may be retried, any other failure not.'
run 'prepare=$(jobman run --name prepare_data -- python3 prepare_data.py)'
run 'shards=$(for shard in 1 2 3 4; do
    jobman run --name "shard_$shard" --after-success "$prepare" \
      --pool analysis --slots 1 \
      --retries 2 --retryable-exit-code 1 --retry-delay 1s \
      -- python3 analyze_shard.py --shard "$shard"
  done)'

say 'What can never fit is refused at once, and what nobody has declared too.'
run 'jobman run --pool analysis --slots 3 -- true || echo "exit status $?"'
run 'jobman run --pool rendering -- true || echo "exit status $?"'

say 'When the preparation has succeeded, two analyses run and two are queued.'
run 'jobman wait "$prepare"'
glimpse shard_4 '\(queued\|running\)'
run 'jobman list'

say 'A failed run gives its slot back: nobody holds one while waiting for the next try.'
glimpse shard_2 backoff
run 'jobman status shard_2'

say 'Three shards succeed; the damaged one is not tried again.'
run 'jobman wait $shards || echo "exit status $?"'
run 'jobman list'
run 'jobman logs --stream stdout shard_1'
run 'jobman logs --all shard_2'
run 'jobman logs --stream stderr shard_4'

say 'Never more than two analyses ran at once.'
run 'cat moments.txt'
run 'python3 at_once.py'

expect 'the number of jobs' "$(jobman list | grep -c '^0')" 5
expect 'the number of runs' "$(grep -c begin moments.txt)" 6
# Two at once, unless the machine is so busy that one has ended before another could begin.
expect 'the most analyses at once' "$(python3 at_once.py | sed 's/^1$/2/')" 2
expect 'the outcome of the preparation' "$(jobman status "$prepare" | cut -f4)" success
expect 'the outcomes' "$(for job in $shards; do jobman status "$job" | cut -f4; done | tr '\n' ' ')" \
    'success success success failure '
expect 'what is active' "$(jobman list --json --active)" '{"schema_version":1,"data":{"jobs":[]}}'
codes="*(run['exit']['exit_code'] for run in data['runs'])"
expect 'the exit codes of shard 1' "$(field shard_1 "$codes")" '0'
expect 'the exit codes of shard 2' "$(field shard_2 "$codes")" '1 0'
expect 'the exit codes of shard 3' "$(field shard_3 "$codes")" '1 0'
expect 'the exit codes of shard 4' "$(field shard_4 "$codes")" '3'
for job in $shards; do
    expect 'what it waited for' \
        "$(field "$job" "*((edge['depends_on'], edge['observed_outcome']) for edge in data['dependencies'])")" \
        "('$prepare', 'success')"
    expect 'how it was admitted' \
        "$(field "$job" "data['admission']['pool'], data['admission']['slots'], 'released_at' in data['admission']")" \
        'analysis 1 True'
done

# A supervisor that has recorded the end of its job is gone a moment later.
rounds=50
while [ "$rounds" -gt 0 ] && [ -n "$(left)" ]; do
    rounds=$((rounds - 1))
    sleep 0.1
done
expect 'what is left running' "$(left)" ''
printf '\nNo process is left. Everything was as told.\n'
