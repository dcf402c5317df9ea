"""Record the machine instructions that ptxas makes of some instructions of PTX, in `data/machine_code.json`.

    python -m tests.simulator.counters.record_machine_code NVDISASM

NVDISASM is the path of CUDA's disassembler, which is in the wheel nvidia-cuda-nvdisasm.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cudart_py.images import compile_image

FILE = Path(__file__).parent / "data" / "machine_code.json"
# Opcodes by the type of their operands, all of which have the same type.
BINARY = {
    "f32": ("mul.f32", "div.rn.f32", "div.rn.ftz.f32", "div.full.f32", "div.approx.f32", "div.approx.ftz.f32"),
    "f64": ("mul.f64", "div.rn.f64"),
    "s32": ("add.s32", "div.s32", "rem.s32"),
    "u32": ("div.u32", "rem.u32"),
    "s64": ("div.s64", "rem.s64"),
    "u64": ("div.u64", "rem.u64"),
}
UNARY = {
    "f32": (
        "rcp.rn.f32", "sqrt.rn.f32", "sin.approx.f32", "cos.approx.f32", "tanh.approx.f32",
        *(f"{name}.approx{ftz}.f32" for name in ("rcp", "sqrt", "rsqrt", "lg2", "ex2") for ftz in ("", ".ftz")),
    ),
    "f64": ("rcp.rn.f64", "sqrt.rn.f64"),
}  # fmt: skip  # lists of words
REGISTERS = {"f32": ("float", "f"), "f64": ("double", "d"), "s32": ("int", "r"), "u32": ("unsigned", "r"),
             "s64": ("long long", "l"), "u64": ("unsigned long long", "l")}  # fmt: skip  # rows of a table
SPECIAL = ("MUFU", "FCHK", "I2F", "F2I")
DOUBLE = ("DADD", "DMUL", "DFMA")
# The instructions of a kernel besides those of an opcode with two and three operands: addresses, loads, store and EXIT.
REST = {2: 8, 3: 9}
SOURCE = """
extern "C" __global__ void k({type}* x) {{
    {type} a = x[threadIdx.x], b = x[threadIdx.x + 32], c = b;
    {statement}
    x[threadIdx.x + 64] = c;
}}
"""


def instructions(nvdisasm: str, source: str) -> list[str]:
    """Return the machine instructions of a kernel along the path of usual operands, up to the first EXIT."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(compile_image(source, arch="sm_90").cubin)
        text = subprocess.run([nvdisasm, "-c", path], capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in text.splitlines()]
    found: list[str] = []
    place, returned = 0, 0
    while "EXIT" not in found:
        line = lines[place]
        place += 1
        match = re.match(r"/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*)", line)
        if match is None:
            continue
        found.append(match[2])
        if match[2].startswith("CALL"):
            name = re.search(r"\(\$(\S+)\)", match[3])
            assert name is not None
            place, returned = next(at for at, text in enumerate(lines) if text == f"${name[1]}:"), place
        elif match[2].startswith("RET"):
            place = returned
        target = re.search(r"\((\.L_x_\d+)\)", match[3])
        if match[2] == "BRA" and target:
            after = lines.index(f"{target[1]}:", place)
            # The conditional branches skip the call of the subroutine for rare operands.
            if match[1] is None or any("CALL" in skipped for skipped in lines[place:after]):
                place = after
    return found


def count(found: list[str], names: tuple[str, ...]) -> int:
    """Return how many instructions have one of these names."""
    return sum(name.partition(".")[0] in names for name in found)


def main() -> None:
    nvdisasm = sys.argv[1]
    record = {}
    for table, operands in ((BINARY, "%0, %1, %2"), (UNARY, "%0, %1")):
        for kind, opcodes in table.items():
            name, letter = REGISTERS[kind]
            inputs = f'"{letter}"(a)' if table is UNARY else f'"{letter}"(a), "{letter}"(b)'
            for opcode in opcodes:
                statement = f'asm("{opcode} {operands};" : "={letter}"(c) : {inputs});'
                found = instructions(nvdisasm, SOURCE.format(type=name, statement=statement))
                record[opcode] = [len(found) - REST[len(operands.split())], count(found, SPECIAL), count(found, DOUBLE)]
    FILE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
