"""Record what the driver says of the occupancy of many kernels, for the test that works it out from numbers alone.

    python tests/context/record_occupancy.py OUT.json [COMBINATIONS]     (default: 2000)

Kernels are compiled with register limits from 16 to 255, some without a limit, and with several sizes of static
shared memory; each is asked for random block sizes and dynamic shared bytes. Needs a GPU. Each row of the file is a
block's threads, a thread's registers, a block's static shared bytes, its dynamic ones, and the driver's blocks per
multiprocessor.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import cudart_py as cuda
from cudart_py.driver.seam import api

# Many values that live at once, so that the register limit is what decides.
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
# Without a limit the compiler's counts are no multiples of 8.
FREE_LIVE = (2, 5, 9, 14, 22, 37, 53, 71, 100)
STATIC_BYTES = (1, 1000, 8192, 40000)


def kernels() -> list[cuda.Kernel]:
    """Compile one kernel for each register limit, and some without a limit, with each static size."""
    variants = [(max(4, limit - 12), [f"--maxrregcount={limit}"]) for limit in REGISTER_LIMITS]
    variants += [(live, []) for live in FREE_LIVE]
    made = []
    for live, options in variants:
        for static in STATIC_BYTES:
            module = cuda.compile(SOURCE, define={"LIVE": live, "STATIC_BYTES": static}, options=options)
            made.append(module["busy"])
    return made


def record(combinations: int) -> dict[str, object]:
    """Ask the driver for so many combinations."""
    device = cuda.current_device()
    made = kernels()
    choose = random.Random(0)
    rows: list[tuple[int, int, int, int, int]] = []
    while len(rows) < combinations:
        kernel = made[len(rows) % len(made)]
        attributes = kernel.attributes
        most_dynamic = device.properties.shared_memory_per_block_optin - attributes.shared_bytes
        threads = choose.choice((choose.randint(1, 1024), 32 * choose.randint(1, 32), choose.randint(1, 128)))
        dynamic = choose.choice(
            (0, choose.randint(0, most_dynamic), choose.randint(0, 20_000), 1024 * choose.randint(0, 100))
        )
        dynamic = min(dynamic, most_dynamic)
        threads = min(threads, attributes.max_threads_per_block)
        kernel.launch(1, threads, dynamic)  # opts in to the dynamic bytes
        blocks = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.handle, threads, dynamic)
        rows.append((threads, attributes.registers, attributes.shared_bytes, dynamic, int(blocks)))
    return {
        "device": device.name,
        "compute_capability": device.compute_capability,
        "driver": cuda.driver_version(),
        "columns": ["threads", "registers", "static_bytes", "dynamic_bytes", "blocks"],
        "rows": rows,
    }


def main() -> None:
    """Write the record and say what is in it."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    result = record(int(sys.argv[2]) if len(sys.argv) == 3 else 2000)
    rows = result.pop("rows")
    assert isinstance(rows, list)
    lines = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps(result)
    Path(sys.argv[1]).write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n')
    registers = sorted({row[1] for row in rows})
    wrong = 0
    for threads, used, static, dynamic, blocks in rows:
        found = cuda.occupancy(cuda.current_device().compute_capability, threads, used, static + dynamic)
        if found.blocks != blocks:
            wrong += 1
            print(f"differs: {threads=} {used=} {static=} {dynamic=}: the driver says {blocks}, we {found}")
    print(f"{len(rows)} combinations, registers {registers}, {wrong} differ")


if __name__ == "__main__":
    main()
