"""Compare the race check with an independent answer on random kernels: does any pair of accesses race?

    python -m tests.fuzz.random_races --count 2000 --seed 1 --engine numpy
    python -m tests.fuzz.random_races --first 77 --count 1 --seed 1 --show      one kernel again, with its source

All threads of a kernel execute the same steps. In a step, some of the threads access a word, a vector or a byte in
shared or global memory, or all of them synchronise with their block or their warp. Two accesses race if they are by
different threads, have a byte in common, at least one of them writes, not both are atomic in a scope that contains both
threads, and no barrier that both threads share comes between their steps. `races` compares each write with every other
access, without the simulator.

Each write of a kernel stores another value, because storing the value that is already there is not a race. A kernel
depends only on the seed and its number. Even numbers have no race, odd ones do. The exit status says whether the check
was wrong.
"""

import argparse
import os
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import cudart_py as cuda

# The number of words that kernels access, a multiple of all sizes of vectors.
WORDS = 64
# Kernels per source.
BATCH = 25
MOST_THREADS = 256
# Expressions of a thread, in C and in Python: the index of the word that it accesses, before it is reduced modulo the
# number of words. `t` is the thread's index in the grid, `i` in its block, and `b` the index of its block.
INDICES = ("t", "i", "t + {n}", "{n}", "t / {k}", "t % {k}", "i / 32", "i % 32", "b", "b + i % {k}", "t * {k}")
# The condition under which a thread accesses the word.
CONDITIONS = (
    "1", "1", "1", "t == {n}", "i == {n}", "t == {last}", "i == {threads} - 1", "i % 32 == {lane}", "i % 32 == 31",
    "i / 32 == {warp}", "b == {block}", "t % {k} == 0", "i < {n}", "i >= {n}",
)  # fmt: skip  # rows of a table


# The kinds of steps of a kernel: all, or only atomics, which do not race in a scope that contains all threads.
ATOMICS = ["__syncthreads", "atomic", "atomic_block"]
KINDS = [["__syncwarp", "read", "read", "read", "write", "write", *ATOMICS]] * 2 + [ATOMICS]


@dataclass(frozen=True)
class Step:
    """A step of a kernel: a barrier, or the access of some threads. Sizes are in bytes."""

    kind: str
    index: str = ""
    condition: str = ""
    size: int = 4

    def text(self, number: int, threads: int) -> str:
        """Return the step's C++."""
        if not self.index:
            return f"{self.kind}();"
        place = f"({self.index}) % {WORDS * 4 // self.size}"
        unique = f"{number + 1} * {MOST_THREADS} + t"
        access = {
            ("read", 1): f"sum += ((unsigned char *)words)[{place}];",
            ("read", 4): f"sum += words[{place}];",
            ("read", 8): f"sum += get(((uint2 *)words)[{place}]);",
            ("read", 16): f"sum += get(((uint4 *)words)[{place}]);",
            ("write", 1): f"((unsigned char *)words)[{place}] = {number + 1};",
            ("write", 4): f"words[{place}] = {unique};",
            ("write", 8): f"((uint2 *)words)[{place}] = make_uint2({unique}, {unique});",
            ("write", 16): f"((uint4 *)words)[{place}] = make_uint4({unique}, {unique}, {unique}, {unique});",
            ("atomic", 4): f"atomicAdd(words + {place}, {MOST_THREADS * 100});",
            ("atomic_block", 4): f"atomicAdd_block(words + {place}, {MOST_THREADS * 100});",
        }[self.kind, self.size]
        return f"if ({self.condition}) {access}"


@dataclass(frozen=True)
class Kernel:
    """A random kernel, in shared or global memory."""

    number: int
    space: str
    blocks: int
    threads: int
    steps: tuple[Step, ...]

    @property
    def source(self) -> str:
        """The kernel's C++.

        The words at the end are read so that no store is eliminated. `zero` keeps the compiler from loading words that
        a thread does not read, which it does if it knows that they exist.
        """
        parameter, declared = "words", ""
        if self.space == "shared":
            parameter = "unused"
            declared = f"__shared__ uint4 all[{WORDS // 4}]; unsigned *words = (unsigned *)all + zero;"
        steps = [step.text(number, self.threads) for number, step in enumerate(self.steps)]
        fill = f"for (unsigned w = i; w < {WORDS}; w += {self.threads}) words[w] = 0x80808080u + w * 0x10000u;"
        body = [declared, fill, "__syncthreads();"] if self.space == "shared" else []
        body += [*steps, "__syncthreads();"]
        body += ["out[t] = sum;" if self.space == "global" else f"out[t] = sum + words[i % {WORDS}];"]
        lines = "\n    ".join(body)
        return (
            f'extern "C" __global__ void k{self.number}(unsigned *{parameter}, unsigned *out, int zero)\n{{\n'
            "    unsigned i = threadIdx.x, b = blockIdx.x, t = b * blockDim.x + i, sum = 0;\n"
            f"    {lines}\n}}\n"
        )

    def races(self) -> bool:
        """Return whether any two accesses race."""
        rows = [row for number, step in enumerate(self.steps) if step.index for row in self._accesses(number, step)]
        if not rows:
            return False
        byte, thread, number, writes, scope = np.array(rows).T
        # The number of barriers of the block, and of the warp, before each step.
        of_block, of_warp = (
            np.cumsum([step.kind in kinds for step in self.steps])[number]
            for kinds in (("__syncthreads",), ("__syncthreads", "__syncwarp"))
        )
        block, warp = thread // self.threads, thread // self.threads * 32 + thread % self.threads // 32
        if self.space == "shared":
            byte = byte + block * WORDS * 4
        for one in np.flatnonzero(writes):
            ordered = ((block == block[one]) & (of_block != of_block[one])) | (
                (warp == warp[one]) & (of_warp != of_warp[one])
            )
            atomic = np.minimum(scope, scope[one]) >= np.where(block == block[one], 1, 2)
            if ((byte == byte[one]) & (thread != thread[one]) & ~ordered & ~atomic).any():
                return True
        return False

    def _accesses(self, number: int, step: Step) -> Iterator[tuple[int, int, int, bool, int]]:
        """Yield a row per accessed byte: the byte, the thread, the step, whether it is a write, and its scope.

        The scope is 2 for an atomic on the device, 1 for one on the block, and 0 for an access that is not atomic.
        """
        scope = {"atomic_block": 1, "atomic": 2}.get(step.kind, 0)
        index, condition = (compile(text.replace("/", "//"), "<step>", "eval") for text in (step.index, step.condition))
        for t in range(self.blocks * self.threads):
            names = {"t": t, "i": t % self.threads, "b": t // self.threads}
            if eval(condition, {}, names):
                first = eval(index, {}, names) % (WORDS * 4 // step.size) * step.size
                for byte in range(first, first + step.size):
                    yield byte, t, number, step.kind != "read", scope


def make(seed: int, number: int, space: str) -> Kernel:
    """Return a random kernel: with an odd number, it has a race, and with an even one, none."""
    generator = random.Random(f"{seed} {space} {number}")
    while True:
        kernel = _random_kernel(generator, number, space)
        if kernel.races() is (number % 2 == 1):
            return kernel


def _random_kernel(generator: random.Random, number: int, space: str) -> Kernel:
    blocks = generator.choice([1, 1, 2, 3])
    threads = generator.choice([32, 64, 80] if blocks > 1 else [32, 64, 96, 128, 200])

    def access(kind: str, condition: str = "") -> Step:
        # Bytes have too few values for several threads to store different ones.
        alone = condition.startswith("t ==")
        size = generator.choice({"read": [4, 4, 4, 1, 8, 16], "write": [4, 4, 8, 16, *[1] * alone]}.get(kind, [4]))
        index = generator.choice(INDICES)
        names = {
            "n": generator.randrange(threads), "k": generator.choice([2, 3, 4, 16]), "threads": threads,
            "last": blocks * threads - 1, "lane": generator.randrange(32), "block": generator.randrange(blocks),
            "warp": generator.randrange(-(-threads // 32)),
        }  # fmt: skip  # rows of a table
        return Step(kind, index.format(**names), (condition or generator.choice(CONDITIONS)).format(**names), size)

    steps = []
    kinds = generator.choice(KINDS)
    for _ in range(generator.randrange(3, 8)):
        kind = generator.choice(kinds)
        if kind.startswith("__"):
            steps.append(Step(kind))
        elif kind == "read":
            steps.append(access(kind))
        else:
            steps.append(access(kind, generator.choice(["", "", "t == {n}", "t == {last}", "i % 32 == {lane}"])))
    return Kernel(number, space, blocks, threads, tuple(steps))


HEAD = """
__device__ unsigned get(uint2 v) { return v.x + v.y; }
__device__ unsigned get(uint4 v) { return v.x + v.y + v.z + v.w; }
"""


def mistakes(kernels: list[Kernel]) -> Iterator[tuple[Kernel, list[str]]]:
    """Yield the kernels about which the race check is wrong, with its reports."""
    module = cuda.compile(HEAD + "".join(kernel.source for kernel in kernels))
    for kernel in kernels:
        words = cuda.to_device(np.arange(WORDS, dtype=np.uint32) * 0x10000 + 0x80808080)
        out = cuda.empty(kernel.blocks * kernel.threads, np.uint32)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module[f"k{kernel.number}"][kernel.blocks, kernel.threads](words, out, 0)
            cuda.current_device().synchronize()
        texts = [str(warning.message) for warning in caught]
        if any("race: " not in text for text in texts) or bool(texts) != (kernel.number % 2 == 1):
            yield kernel, texts


def main() -> None:
    """Run the kernels that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of kernels for each space")
    parser.add_argument("--first", type=int, default=0, help="number of the first kernel")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["numpy", "native"], default="numpy")
    parser.add_argument("--show", action="store_true", help="print the source of all kernels")
    given = parser.parse_args()
    os.environ["CUDART_PY_SIMULATOR_ENGINE"] = given.engine
    wrong = 0
    with cuda.Device(0):
        for first in range(given.first, given.first + given.count, BATCH):
            numbers = range(first, min(first + BATCH, given.first + given.count))
            for space in ("shared", "global"):
                kernels = [make(given.seed, number, space) for number in numbers]
                for kernel in kernels if given.show else ():
                    print(kernel.source)
                for kernel, texts in mistakes(kernels):
                    wrong += 1
                    shape = f"grid {kernel.blocks}, block {kernel.threads}"
                    print(f"{space} kernel {kernel.number} of seed {given.seed}, {shape}:", kernel.source, *texts)
    print(f"{wrong} wrong of {2 * given.count}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
