#!/usr/bin/env bash
# Check the whole project on a machine with a GPU and leave what was seen in a folder.
#
#   scripts/gpu_check.sh OUT [STEP...]    steps: suite exhaustive pools sanitizer sanitize-tour benchmarks tour bars host   (default: all)
#                                         and when asked for: gate, baseline, several
#
# The suite's tests run side by side, in as many processes as JOBS says, by default 12.
# PYTHON names the interpreter, by default python3 of the environment that has the package's
# dependencies. The sanitizing steps run NVIDIA's compute-sanitizer, and bars compiles with nvcc; both come with the
# CUDA toolkit. `several` wants several GPUs, and for its ranks mpi4py and an MPI. What the tour and bars write makes
# docs/h200.md (scripts/record_tour.py). Nothing else should use the GPU meanwhile.
set -uo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
steps=${*:-suite exhaustive pools sanitizer sanitize-tour benchmarks tour bars host}
python=${PYTHON:-python3}
export CUDART_PY_DRIVER=cuda PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
sanitizer="compute-sanitizer --report-api-errors no --target-processes application-only --error-exitcode 86"
sanitized=("$python" -m pytest -q -n 0 -p no:cacheprovider -m "not unsanitized and not exhaustive" --hypothesis-profile=short)
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

# Once a program has destroyed a memory pool, initcheck of CUDA 13.0 now and then crashes in its next copies, in a
# program in C as well. In a process of its own, each file of tests ends before that.
each_file() { # COMMAND...: run it with each file of tests, in a process of its own
    local file status wrong=0
    while read -r file; do
        echo "== $file"
        "$@" "$file"
        status=$?
        # pytest's 5: the file has no test to run.
        if [ $status != 0 ] && [ $status != 5 ]; then wrong=1; fi
    done < <(find tests -name "test_*.py" | sort)
    return $wrong
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
        # Tests that ask how much memory is free are a group, which runs while all others wait (tests/conftest.py).
        # With -v, the output names each test when it begins and when it ends, even if the run is cut off.
        note suite "$python" -m pytest -v -p no:cacheprovider -n "${JOBS:-12}" tests
        ;;
    exhaustive)
        # The long searches, which the suite leaves out.
        note exhaustive "$python" -m pytest -v -p no:cacheprovider -n "${JOBS:-12}" -m exhaustive tests
        ;;
    pools)
        # The driver crashes where a pool is destroyed with frees in flight.
        note pools "$python" tests/memory/close_pools.py
        ;;
    sanitizer)
        # Each test marked unsanitized says why.
        for tool in memcheck racecheck synccheck; do
            note "sanitizer-$tool" $sanitizer --tool "$tool" "${sanitized[@]}" tests
        done
        note sanitizer-initcheck each_file $sanitizer --tool initcheck --require-cuda-init no "${sanitized[@]}"
        ;;
    sanitize-tour)
        # What is wrong on purpose runs on the software driver, in processes of its own.
        course=$("$python" -c "from library_tour import stops; print(*stops.COURSE)")
        for tool in memcheck racecheck initcheck synccheck; do
            note "sanitize-tour-$tool" $sanitizer --tool "$tool" "$python" -m library_tour run --untimed $course
        done
        ;;
    benchmarks)
        note benchmarks "$python" -m pytest -q -p no:cacheprovider tests/benchmarks --benchmark-enable \
            --benchmark-json="$out/benchmarks.json"
        ;;
    tour)
        note tour "$python" -m library_tour run --json "$out/tour.json" --plot "$out/plots"
        ;;
    bars)
        for peers in course copies libraries measuring; do
            note "$peers" "$python" -m tests.benchmarks.peers $peers --json "$out/$peers.json"
        done
        ;;
    gate | baseline)
        # Compiled once for all of the runs.
        export CUDART_PY_CACHE=${CUDART_PY_CACHE:-$(mktemp -d)}
        timed="tests/benchmarks -q -p no:cacheprovider --ignore=tests/benchmarks/bench_simulator.py --benchmark-max-time=0.2"
        if [ "$step" = gate ]; then
            note gate "$python" -m cudart_py gate tests/benchmarks/h200.json $timed
        else
            note baseline "$python" -m cudart_py gate --record "$out/h200.json" $timed
        fi
        ;;
    several)
        # Each within a time limit, since a rank that waits for another may wait forever.
        stops=$("$python" -c "from library_tour import stops; print(*stops.SEVERAL_DEVICES)")
        gpus=$("$python" -c "import cudart_py; print(len(cudart_py.devices()))")
        # cuBLASMp asks for NVLink's multicast by itself where NCCL has been told not to.
        [ "${NCCL_NVLS_ENABLE:-}" = 0 ] && export CUBLASMP_DISABLE_MULTICAST=1
        note several timeout -k 10 150 "$python" -m library_tour run $stops --json "$out/several.json"
        if "$python" -c "import mpi4py.MPI" 2>"$out/mpi.txt" && command -v mpiexec >/dev/null; then
            note several-ranks timeout -k 10 180 mpiexec -n "$gpus" "$python" -m library_tour run \
                --json "$out/several_ranks.json"
        else
            echo "no ranks: mpi4py or mpiexec is missing"
        fi
        note devices timeout -k 10 400 "$python" -m tests.benchmarks.peers devices --limit 90 \
            --json "$out/devices.json"
        ;;
    host)
        note host "$python" -m tests.benchmarks.peers host --json "$out/host.json"
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
