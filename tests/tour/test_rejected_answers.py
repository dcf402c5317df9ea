"""The check of an exercise rejects an answer that does what the text forbids, and reports the mistake."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from library_tour import answers, lesson
from tests.tour.outcomes import changed_solution

# Answers that are written anew.
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
ONE_WARP = """
extern "C" __global__ void reverse(const unsigned* in, unsigned* out, int n)
{
    if (blockIdx.x == 0 && threadIdx.x < 32)
        for (int i = threadIdx.x; i < n; i += 32)
            out[n - 1 - i] = in[i];
}
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
ROWS_FROM_GLOBAL_MEMORY = """
extern "C" __global__ void sum_rows(const unsigned* in, unsigned* sums)
{
    unsigned sum = 0;
    for (int k = 0; k < 32; k++)
        sum += in[threadIdx.x * 32 + k];
    sums[threadIdx.x] = sum;
}
"""


class Rejected(NamedTuple):
    """An answer, as a text or as changes to the solution, with all facts that fail and the report about the first."""

    exercise: str
    answer: str | Mapping[str, str]
    facts: list[str]
    report: str = ""


def for_each(text: str, *cases: object) -> list[str]:
    return [text.format(case) for case in cases]


SHUFFLE_OF_NO_ONE = "a thread uses what a shuffle read from a lane that does not take part in it"
RACE = "two threads access the same memory, at least one of them writes, and nothing orders the two"
REJECTED = {
    "no first waits": Rejected(
        "streams",
        {"    for other in streams[1:]:\n        other.wait(streams[0])\n": ""},
        ["2 streams: all work comes after the earlier work of streams[0]"],
        "streams[1] does not wait for streams[0] before its first piece.",
    ),
    "no last waits": Rejected(
        "streams",
        {"    for other in streams[1:]:\n        streams[0].wait(other)\n": ""},
        ["2 streams: all work comes before the later work of streams[0]"],
        "streams[0] does not wait for streams[1] at the end.",
    ),
    "no first wait for the second kernel": Rejected(
        "streams/easy",
        {"    streams[1].wait(streams[0])\n": ""},
        ["all work comes after the earlier work of streams[0]", RACE],
        "streams[1] does not wait for streams[0] before its first kernel.",
    ),
    "no last wait for the copies": Rejected(
        "streams/hard",
        {"    copy_in.wait(copy_out)\n": ""},
        ["all work comes before the later work of streams[0]"],
        "streams[0] does not wait for streams[1] at the end. streams[0] does not wait for streams[2] at the end.",
    ),
    "one warp reverses": Rejected(
        "coalescing",
        ONE_WARP,
        for_each("each thread {} 8 elements", "reads", "writes"),
        "Thread 0 of block 0 reads more than 8.",
    ),
    "one thread computes all": Rejected(
        "daxpy",
        {"gridDim.x * blockDim.x;": "1;", "int i = ": "int i = threadIdx.x ? n : n * "},
        ["a load of a warp uses all bytes of its sectors"],
        "On average, it uses 25.0 %.",
    ),
    "added on the host": Rejected(
        "vector_add",
        "def add(kernel, a, b):\n    return a + b\n",
        for_each("one launch with just enough blocks adds two vectors of {} elements", "1,024", "1,000", "77"),
        "The number of launches is 0.",
    ),
    "a fixed grid": Rejected(
        "vector_add",
        {"-(-a.size // THREADS)": "1000"},
        for_each("one launch with just enough blocks adds two vectors of {} elements", "1,024", "1,000", "77"),
        "The grid has 1,000 blocks of 256 threads; the elements need 4.",
    ),
    "a wait for the earlier work": Rejected(
        "events",
        {"    marks = [": "    stream.synchronize()\n    marks = ["},
        for_each("{}: all steps are queued before the host waits", "4 steps", "3 steps", "1 step"),
        "The host waited for the stream at answer.py:13: stream.synchronize()",
    ),
    "a wait after each step": Rejected(
        "events",
        {"stream.record())": "stream.record())\n        marks[-1].synchronize()"},
        for_each("{}: all steps are queued before the host waits", "4 steps", "3 steps"),
        "The host waited for the stream at answer.py:17: marks[-1].synchronize()",
    ),
    "shuffles instead of rounds in shared memory": Rejected(
        "synchronization",
        SHUFFLED,
        ["in 8 rounds the warps of a block load sums from shared memory at least 57 times"],
        "The actual value is 28.",
    ),
    "rows summed without shared memory": Rejected(
        "bank_conflicts",
        ROWS_FROM_GLOBAL_MEMORY,
        ["the warp loads the 1,024 elements from shared memory in at least 32 wavefronts"],
        "The actual number is 0.",
    ),
    "a wait for the copy that was queued last": Rejected(
        "copies",
        {"copied[piece - 2]": "copied[piece - 1]"},
        for_each("{} pieces: the last two copies are still queued when the function returns", 3, 4, 6),
        "The last copy but one has run. Before refilling a buffer, wait for the copy that reads it, not for the one "
        "that was queued last.",
    ),
    "a buffer that is refilled before its copy has run": Rejected(
        "copies",
        {"        if piece >= 2:\n            copied[piece - 2].synchronize()\n": ""},
        for_each("{} elements arrive", "6,000", "4,077"),
        "4000 of 6000 elements differ; the first, [0], is 0.15630704164505005, not 0.6707900166511536. A queued copy "
        "reads its buffer when it runs. If the buffer is refilled before then, the elements of a later piece arrive.",
    ),
    "threads return before shuffles whose result goes to an atomic": Rejected(
        "reduction/easy",
        LARGEST_WITHOUT_THE_REST,
        ["the largest of 1 element", SHUFFLE_OF_NO_ONE],
        "kernel largest at answer.cu:13: uninitialised value reaches an atomic operation: a shuffle at answer.cu:11 "
        "read it from lane 16 of the warp, which does not take part\n    13 | atomicMax(largest, seen);",
    ),
    "threads return before shuffles whose result is added up": Rejected(
        "reduction",
        {
            "    float sum = i < n ? x[i] * x[i] : 0.0f;": (
                "    if (i >= n)\n        return;\n    float sum = x[i] * x[i];"
            )
        },
        [SHUFFLE_OF_NO_ONE],
    ),
    # The last row is coupled to itself through the ring, which shows only if the diagonal barely dominates.
    "a ring that is not closed": Rejected(
        "crank_nicolson",
        {"r / (a + b + c)": "r / b"},
        ["a long heat-equation step: the unknowns of 5 rings"],
    ),
    "seeds whose sequences are shifted copies of each other": Rejected(
        "rand",
        {"curand_init(seed, i, 0, &state)": "curand_init(seed + i, 0, 0, &state)"},
        for_each("seeds 7 and {} have at most 4 numbers in common, at any indices", 8, 9),
    ),
    "a spectrum that is not that of a real function": Rejected(
        "fft",
        {"2 * k == n ? 0.0 : double(k) / n": "double(k) / n"},
        ["64 points: the wave k = 32 that `irfft` transforms back is real"],
    ),
    "a spectrum computed on the host": Rejected(
        "fft",
        {"libraries.rfft(u)": "cuda.to_device(__import__('numpy').fft.rfft(u.to_host()))"},
        for_each("{} points: no array is copied to the host", 64, 45),
    ),
    "a system solved on the host": Rejected(
        "solver",
        {"libraries.lstsq(a, b)": "cuda.to_device(__import__('numpy').linalg.lstsq(a.to_host(), b.to_host())[0])"},
        for_each("degree {}: no array is copied to the host", 3, 15),
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_an_answer_that_does_what_is_forbidden_is_rejected(case, tmp_path):
    exercise, answer, facts, report = REJECTED[case]
    changes = {lesson.solution(exercise).read_text(encoding="utf-8"): answer} if isinstance(answer, str) else answer
    [checks] = answers.check_answers(exercise, [changed_solution(exercise, changes, tmp_path)])
    failed = [check for check in checks if not check.holds]
    assert [check.fact for check in failed] == facts
    if report:
        assert report in [check.detail for check in failed]
