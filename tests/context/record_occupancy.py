"""Record the driver's occupancy of many kernels, for the test that calculates it without a driver.

    python tests/context/record_occupancy.py OUT.json

Kernels are compiled with register limits from 16 to 255, some without a limit, and with several sizes of static shared
memory. For each, the driver is queried with random block sizes and dynamic shared memory. Needs a GPU. Each row of the
file has the threads per block, the registers per thread, the static and the dynamic shared memory per block in bytes,
and the driver's number of blocks per multiprocessor.
"""

import json
import random
import sys
from pathlib import Path

import cudart_py as cuda
from cudart_py.driver.calls import api

# Many values that are live at once, so that registers limit the occupancy.
SOURCE = """
extern "C" __global__ void busy(float *data, int n) {
    __shared__ char unused[STATIC_BYTES];
    float values[LIVE];
    for (int i = 0; i < LIVE; ++i) values[i] = data[i * n + threadIdx.x];
    for (int round = 0; round < n; ++round)
        #pragma unroll
        for (int i = 0; i < LIVE; ++i) values[i] = values[i] * values[(i + 1) % LIVE] + data[round];
    unused[threadIdx.x % STATIC_BYTES] = (char)values[0];
    __syncthreads();
    for (int i = 0; i < LIVE; ++i) data[i * n + threadIdx.x] = values[i] + unused[(threadIdx.x + i) % STATIC_BYTES];
}
"""
REGISTER_LIMITS = (16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 168, 192, 208, 224, 240, 255)
# Numbers of live values without a register limit, where the compiler's register counts are not multiples of 8.
FREE_LIVE = (2, 5, 9, 14, 22, 37, 53, 71, 100)
STATIC_BYTES = (1, 1000, 8192, 40000)
COMBINATIONS = 2000


def kernels() -> list[cuda.Kernel]:
    """Compile one kernel per register limit, and some without a limit, each with every static size."""
    variants = [(max(4, limit - 12), [f"--maxrregcount={limit}"]) for limit in REGISTER_LIMITS]
    variants += [(live, []) for live in FREE_LIVE]
    return [
        cuda.compile(SOURCE, define={"LIVE": live, "STATIC_BYTES": static}, options=options)["busy"]
        for live, options in variants
        for static in STATIC_BYTES
    ]


def record(combinations: int) -> list[list[int]]:
    """Return one row per combination, with the driver's answer."""
    optin = cuda.current_device().properties.shared_memory_per_block_optin
    made = kernels()
    choose = random.Random(0)
    rows = []
    for number in range(combinations):
        kernel = made[number % len(made)]
        attributes = kernel.attributes
        most = optin - attributes.shared_bytes
        threads = choose.choice((choose.randint(1, 1024), 32 * choose.randint(1, 32), choose.randint(1, 128)))
        threads = min(threads, attributes.max_threads_per_block)
        sizes = (0, choose.randint(0, most), choose.randint(0, 20_000), 1024 * choose.randint(0, 100))
        dynamic = min(choose.choice(sizes), most)
        kernel.configure(1, threads, dynamic)  # opts in to this much dynamic shared memory
        blocks = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.handle, threads, dynamic)
        rows.append([threads, attributes.registers, attributes.shared_bytes, dynamic, int(blocks)])
    return rows


def main() -> None:
    """Write the record, which tests/context/test_occupancy.py reads."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    device = cuda.current_device()
    head = {
        "device": device.name,
        "compute_capability": device.compute_capability,
        "driver": cuda.driver_version(),
        "columns": ["threads", "registers", "static_bytes", "dynamic_bytes", "blocks"],
    }
    lines = ",\n".join(json.dumps(row) for row in record(COMBINATIONS))
    Path(sys.argv[1]).write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
