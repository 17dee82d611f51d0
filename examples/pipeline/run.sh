# sh run.sh: tell the story of the two-step pipeline with the `jobman` and `python3` on PATH, in a scratch directory.
#
# Every command is printed as a reader would type it, and then run. Ends with status 1 if anything is not as told.
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/jobman-demo.XXXXXX")
export JOBMAN_STATE_DIR="$scratch/state"
mkdir "$scratch/work"
cp "$examples/prepare_data.py" "$examples/analyze_data.py" "$scratch/work"
cd "$scratch/work"

leave() {
    status=$?
    # Only a demonstration that failed has jobs left.
    for job in "${prepare:-}" "${analyze:-}"; do
        if [ -n "$job" ]; then jobman cancel "$job" >/dev/null 2>&1 || true; fi
    done
    cd /
    rm -rf "$scratch"
    exit "$status"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

say() { printf '\n# %s\n' "$1"; }
run() {
    printf '$ %s\n' "$1"
    eval "$1"
}
expect() {
    if [ "$2" != "$3" ]; then
        printf 'not as told: %s is "%s" instead of "%s"\n' "$1" "$2" "$3" >&2
        exit 1
    fi
}
# Processes that were started with our state directory: supervisors, and what they run.
left() {
    (unset JOBMAN_STATE_DIR && grep -lsz "^JOBMAN_STATE_DIR=$scratch/state\$" /proc/[0-9]*/environ) || true
}

say 'Two jobs: the second waits for the first, and may be tried again when it fails with exit code 1.'
run 'prepare=$(jobman run --name prepare_data -- python3 prepare_data.py)'
run 'analyze=$(jobman run --name analyze_data --after-success "$prepare" \
    --retries 2 --retryable-exit-code 1 --retry-delay 1s -- python3 analyze_data.py)'

say 'Both were accepted; no terminal is needed any more.'
run 'jobman status "$prepare"'
run 'jobman status "$analyze"'
run 'jobman list'
# The analysis takes a second at least; should this find nobody now, it would prove nothing at the end.
if [ -z "$(left)" ]; then expect 'what is running' nobody 'a supervisor'; fi

say 'Wait for the second one. Interrupting this would cancel nothing.'
run 'jobman wait "$analyze"'
run 'jobman list'

say 'Everything about it can be read afterwards: two runs, the first failed.'
run 'jobman show "$analyze"'
run 'jobman show run "$analyze" 1'

say 'The output of each run is kept, each stream in a file of its own.'
run 'jobman logs --stream stdout "$prepare"'
run 'jobman logs --stream stderr --run 1 "$analyze"'
run 'jobman logs --stream stdout "$analyze"'
run 'jobman logs --all "$analyze"'

say 'For scripts there is versioned JSON; this is the part on what the job has waited for.'
run 'jobman show --json "$analyze" | python3 -m json.tool | sed -n '\''/^        "dependencies"/,/]/p'\'

field() { jobman show --json "$analyze" | python3 -c "import json, sys; data = json.load(sys.stdin)['data']; print($1)"; }
expect 'the outcome of the preparation' "$(jobman status "$prepare" | cut -f4)" success
expect 'the outcome of the analysis' "$(jobman status "$analyze" | cut -f4)" success
expect 'the list of active jobs' "$(jobman list --json --active)" '{"schema_version":1,"data":{"jobs":[]}}'
expect 'the outcomes of its runs' "$(field "*(run['outcome'] for run in data['runs'])")" 'failure success'
expect 'their exit codes' "$(field "*(run['exit']['exit_code'] for run in data['runs'])")" '1 0'
expect 'what it waited for' "$(field "*(edge['depends_on'] for edge in data['dependencies'])")" "$prepare"
expect 'stderr of the first run' "$(jobman logs --stream stderr --run 1 "$analyze")" 'temporary analysis failure'
expect 'stdout of the second run' "$(jobman logs --stream stdout --run 2 "$analyze")" 'result: 42'
expect 'stderr of the second run' "$(jobman logs --stream stderr --run 2 "$analyze")" ''

# A supervisor that has recorded the end of its job is gone a moment later.
rounds=50
while [ "$rounds" -gt 0 ] && [ -n "$(left)" ]; do
    rounds=$((rounds - 1))
    sleep 0.1
done
expect 'what is left running' "$(left)" ''
printf '\nNo process is left. Everything was as told.\n'
