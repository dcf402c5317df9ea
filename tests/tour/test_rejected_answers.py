"""The check of an exercise rejects an answer that does what the text forbids, and reports the mistake."""

import pytest

from library_tour import answers, lesson

FIRST_WAITS = "    for other in streams[1:]:\n        other.wait(streams[0])\n"
LAST_WAITS = "    for other in streams[1:]:\n        streams[0].wait(other)\n"
# A scan with shuffles instead of rounds in shared memory.
SHUFFLED = """
extern "C" __global__ void running_sums(const int* in, int* out, int n)
{
    __shared__ int sums[8];

    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * 256 + threadIdx.x;
    int sum = i < n ? in[i] : 0;
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    for (int before = 0; before < warp; before++)
        sum += sums[before];
    if (i < n)
        out[i] = sum;
}
"""


def with_changes(exercise: str, *changes: tuple[str, str]) -> str:
    code = lesson.solution(exercise).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    return code


def without(exercise: str, *parts: str) -> str:
    return with_changes(exercise, *((part, "") for part in parts))


REVERSE = 'extern "C" __global__ void reverse(const unsigned* in, unsigned* out, int n)'
ONE_THREAD = f"""{REVERSE}
{{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int i = 0; i < n; i++)
            out[n - 1 - i] = in[i];
}}
"""
ONE_WARP = f"""{REVERSE}
{{
    if (blockIdx.x == 0 && threadIdx.x < 32)
        for (int i = threadIdx.x; i < n; i += 32)
            out[n - 1 - i] = in[i];
}}
"""
# The threads beyond the end return before the shuffles.
LARGEST_WITHOUT_THE_REST = """
extern "C" __global__ void largest(const int* x, int* largest, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int seen = x[i];
    for (i += gridDim.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
        seen = max(seen, x[i]);
    for (int step = 16; step > 0; step /= 2)
        seen = max(seen, __shfl_down_sync(0xffffffff, seen, step));
    if (threadIdx.x % 32 == 0)
        atomicMax(largest, seen);
}
"""
SHUFFLE_OF_NO_ONE = "a thread uses what a shuffle read from a lane that does not take part in it"
ROWS_FROM_GLOBAL_MEMORY = """
extern "C" __global__ void sum_rows(const unsigned* in, unsigned* sums)
{
    unsigned sum = 0;
    for (int k = 0; k < 32; k++)
        sum += in[threadIdx.x * 32 + k];
    sums[threadIdx.x] = sum;
}
"""
# The exercise, the answer, the first fact that does not hold, and the report about it.
REJECTED = {
    "no first waits": (
        "streams",
        lambda: without("streams", FIRST_WAITS),
        "2 streams: all work comes after the earlier work of streams[0]",
        "streams[1] does not wait for streams[0] before its first piece.",
    ),
    "no last waits": (
        "streams",
        lambda: without("streams", LAST_WAITS),
        "2 streams: all work comes before the later work of streams[0]",
        "streams[0] does not wait for streams[1] at the end.",
    ),
    "no waits": (
        "streams",
        lambda: without("streams", FIRST_WAITS, LAST_WAITS),
        "2 streams: all work comes after the earlier work of streams[0]",
        "streams[1] does not wait for streams[0] before its first piece.",
    ),
    "no first wait for the second kernel": (
        "streams/easy",
        lambda: without("streams/easy", "    streams[1].wait(streams[0])\n"),
        "all work comes after the earlier work of streams[0]",
        "streams[1] does not wait for streams[0] before its first kernel.",
    ),
    "no last wait for the copies": (
        "streams/hard",
        lambda: without("streams/hard", "    copy_in.wait(copy_out)\n"),
        "all work comes before the later work of streams[0]",
        "streams[0] does not wait for streams[1] at the end. streams[0] does not wait for streams[2] at the end.",
    ),
    "one thread reverses": (
        "coalescing",
        lambda: ONE_THREAD,
        "each thread reads 8 elements",
        "Thread 0 of block 0 reads more than 8.",
    ),
    "one warp reverses": (
        "coalescing",
        lambda: ONE_WARP,
        "each thread reads 8 elements",
        "Thread 0 of block 0 reads more than 8.",
    ),
    "one thread computes all": (
        "daxpy",
        lambda: with_changes(
            "daxpy", ("gridDim.x * blockDim.x;", "1;"), ("int i = ", "int i = threadIdx.x ? n : n * ")
        ),
        "a load of a warp uses all bytes of its sectors",
        "On average, it uses 25.0 %.",
    ),
    "added on the host": (
        "vector_add",
        lambda: "def add(kernel, a, b):\n    return a + b\n",
        "one launch with just enough blocks adds two vectors of 1,024 elements",
        "The number of launches is 0.",
    ),
    "a fixed grid": (
        "vector_add",
        lambda: with_changes("vector_add", ("-(-a.size // THREADS)", "1000")),
        "one launch with just enough blocks adds two vectors of 1,024 elements",
        "The grid has 1,000 blocks of 256 threads; the elements need 4.",
    ),
    "a wait for the earlier work": (
        "events",
        lambda: with_changes("events", ("    marks = [", "    stream.synchronize()\n    marks = [")),
        "4 steps: all steps are queued before the host waits",
        "The host waited for the stream at answer.py:13: stream.synchronize()",
    ),
    "a wait after each step": (
        "events",
        lambda: with_changes("events", ("stream.record())", "stream.record())\n        marks[-1].synchronize()")),
        "4 steps: all steps are queued before the host waits",
        "The host waited for the stream at answer.py:17: marks[-1].synchronize()",
    ),
    "no rounds": (
        "synchronization",
        lambda: SHUFFLED,
        "in 8 rounds the warps of a block load sums from shared memory at least 57 times",
        "The actual value is 28.",
    ),
    "rows summed without shared memory": (
        "bank_conflicts",
        lambda: ROWS_FROM_GLOBAL_MEMORY,
        "the warp loads the 1,024 elements from shared memory in at least 32 wavefronts",
        "The actual number is 0.",
    ),
    "a wait for the copy that was queued last": (
        "copies",
        lambda: without("copies").replace("copied[piece - 2]", "copied[piece - 1]"),
        "3 pieces: the last two copies are still queued when the function returns",
        "The last copy but one has run. Before refilling a buffer, wait for the copy that reads it, not for the one "
        "that was queued last.",
    ),
    "a buffer that is refilled before its copy has run": (
        "copies",
        lambda: without("copies", "        if piece >= 2:\n            copied[piece - 2].synchronize()\n"),
        "6,000 elements arrive",
        "4000 of 6000 elements differ; the first, [0], is 0.15630704164505005, not 0.6707900166511536. A queued copy "
        "reads its buffer when it runs. If the buffer is refilled before then, the elements of a later piece arrive.",
    ),
    "threads return before shuffles whose result goes to an atomic": (
        "reduction/easy",
        lambda: LARGEST_WITHOUT_THE_REST,
        SHUFFLE_OF_NO_ONE,
        "kernel largest at answer.cu:13: uninitialised value reaches an atomic operation: a shuffle at answer.cu:11 "
        "read it from lane 16 of the warp, which does not take part\n    13 | atomicMax(largest, seen);",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_an_answer_that_does_what_is_forbidden_is_rejected(case, tmp_path):
    exercise, answer, fact, said = REJECTED[case]
    file = (tmp_path / "answer").with_suffix(lesson.solution(exercise).suffix)
    file.write_text(answer(), encoding="utf-8")
    [found] = answers.check_answers(exercise, [file])
    assert [check.detail for check in found if not check.holds and check.fact == fact] == [said]
    assert next(check.fact for check in found if not check.holds) == fact


def wrong_facts(exercise, right, wrong, folder):
    """Return the facts that do not hold for the solution with `right` replaced by `wrong`."""
    solution = lesson.solution(exercise)
    file = folder / f"answer{solution.suffix}"
    code = solution.read_text(encoding="utf-8")
    assert right in code
    file.write_text(code.replace(right, wrong), encoding="utf-8")
    [found] = answers.check_answers(exercise, [file])
    return [check.fact for check in found if not check.holds]


def test_a_wait_before_the_steps_are_queued_is_found(tmp_path):
    facts = wrong_facts("events", "    marks = [", "    stream.synchronize()\n    marks = [", tmp_path)
    assert facts == [
        f"{steps}: all steps are queued before the host waits" for steps in ("4 steps", "3 steps", "1 step")
    ]


def test_threads_that_return_before_a_shuffle_are_named_as_the_cause(tmp_path):
    right = "    float sum = i < n ? x[i] * x[i] : 0.0f;"
    facts = wrong_facts("reduction", right, "    if (i >= n)\n        return;\n    float sum = x[i] * x[i];", tmp_path)
    assert facts == ["the sum of 1,971 squares", "the sum of 1 square", SHUFFLE_OF_NO_ONE]


def test_a_ring_that_is_not_closed_is_found(tmp_path):
    """The last row is coupled to itself through the ring, which shows only if the diagonal barely dominates."""
    facts = wrong_facts("crank_nicolson", "r / (a + b + c)", "r / b", tmp_path)
    assert facts == ["a long heat-equation step: the unknowns of 5 rings"]


def test_seeds_whose_sequences_are_shifted_copies_of_each_other_are_found(tmp_path):
    facts = wrong_facts("rand", "curand_init(seed, i, 0, &state)", "curand_init(seed + i, 0, 0, &state)", tmp_path)
    assert facts == [f"seeds 7 and {seed} have at most 4 numbers in common, at any indices" for seed in (8, 9)]


ON_HOST = {
    "solver": ("return libraries.lstsq(a, b)", "return cuda.to_device(np.linalg.lstsq(a.to_host(), b.to_host())[0])"),
    "fft": (
        "n, spectrum = u.size, libraries.rfft(u)",
        "n, spectrum = u.size, cuda.to_device(np.fft.rfft(u.to_host()))",
    ),
}


@pytest.mark.parametrize("exercise", ON_HOST)
def test_work_on_the_host_is_found(exercise, tmp_path):
    right, wrong = ON_HOST[exercise]
    facts = wrong_facts(exercise, right, wrong.replace("np.", "__import__('numpy')."), tmp_path)
    assert len(facts) == 2
    assert all(fact.endswith(": no array is copied to the host") for fact in facts)


def test_a_spectrum_that_is_not_that_of_a_real_function_is_found(tmp_path):
    facts = wrong_facts("fft", "2 * k == n ? 0.0 : double(k) / n", "double(k) / n", tmp_path)
    assert facts == ["64 points: the wave k = 32 that `irfft` transforms back is real"]
