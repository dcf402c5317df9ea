#!/usr/bin/env bash
# Run the tests on the simulator. A race, a read of unwritten memory or a missed barrier fails its test, and is shown at
# its line.
set -euo pipefail
export CUDART_PY_DRIVER=simulator CUDART_PY_SANITIZER="${CUDART_PY_SANITIZER:-error}"
report="${INPUT_REPORT:-cudart-py.sarif}"
rm -f "$report" # of an earlier run: pytest writes none if it cannot start
read -r -a arguments <<<"${INPUT_TESTS:-}"
exec python -m pytest "${arguments[@]}" --sanitize-report="$report"
