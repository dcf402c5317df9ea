#!/usr/bin/env bash
# Compare the counters of benchmarks with the accepted run, and add the table to the summary of the job.
set -euo pipefail
export CUDART_PY_DRIVER=simulator
comment="${INPUT_COMMENT:-cudart-py.md}"
rm -f "$comment" # of an earlier run: pytest writes none if nothing is compared
read -r -a arguments <<<"$INPUT_BENCHMARKS"
read -r -a limits <<<"${INPUT_LIMITS:-}"
for limit in "${limits[@]}"; do
    arguments+=("--counters-compare-fail=$limit")
done
status=0
python -m pytest "${arguments[@]}" --benchmark-compare="$INPUT_ACCEPTED" --counters-markdown="$comment" || status=$?
if [[ -f $comment && -n ${GITHUB_STEP_SUMMARY:-} ]]; then
    cat "$comment" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
