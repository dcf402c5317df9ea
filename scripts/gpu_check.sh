#!/usr/bin/env bash
# Check the whole project on a machine with a GPU and leave what was seen in a folder.
#
#   scripts/gpu_check.sh OUT [STEP...]      steps: suite sanitizer benchmarks tour   (default: all)
#
# PYTHON names the interpreter, by default python3 of the environment that has the package's
# dependencies. The sanitizer step runs NVIDIA's compute-sanitizer, which comes with the CUDA toolkit.
set -uo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
steps=${*:-suite sanitizer benchmarks tour}
python=${PYTHON:-python3}
export CUDART_PY_DRIVER=cuda PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
failed=()

note() { # NAME COMMAND...: run it, keep what it prints, remember whether it failed
    local name=$1
    shift
    echo "== $name"
    if "$@" >"$out/$name.txt" 2>&1; then
        tail -n 3 "$out/$name.txt"
    else
        tail -n 40 "$out/$name.txt"
        failed+=("$name")
    fi
}

{
    date -u +%Y-%m-%d
    git rev-parse HEAD 2>/dev/null || echo "no commit known"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    "$python" --version
    "$python" - <<'END'
from importlib.metadata import PackageNotFoundError, version
for name in ("cuda-bindings", "nvidia-cuda-nvrtc", "numpy", "nvmath-python", "pytest", "pytest-benchmark"):
    try:
        print(name, version(name))
    except PackageNotFoundError:
        print(name, "is not installed")
END
} >"$out/environment.txt" 2>&1
cat "$out/environment.txt"

for step in $steps; do
    case $step in
    suite)
        note suite "$python" -m pytest -q -p no:cacheprovider tests
        ;;
    sanitizer)
        # Tests marked unsanitized provoke errors on purpose, or repeat one thing thousands of times.
        for tool in memcheck racecheck initcheck synccheck; do
            note "sanitizer-$tool" compute-sanitizer --tool "$tool" --report-api-errors no --target-processes application-only \
                --error-exitcode 86 "$python" -m pytest -q -p no:cacheprovider -m "not unsanitized" \
                --hypothesis-profile=short tests
        done
        ;;
    benchmarks)
        note benchmarks "$python" -m pytest -q -p no:cacheprovider tests/benchmarks --benchmark-enable \
            --benchmark-json="$out/benchmarks.json"
        ;;
    tour)
        note tour "$python" -m library_tour run --json "$out/tour.json" --plot "$out/plots"
        ;;
    *)
        echo "no step is named '$step'" >&2
        exit 2
        ;;
    esac
done

if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
echo "all passed: $steps"
