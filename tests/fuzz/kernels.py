"""Random kernels as one source for two compilers: functions, and a kernel that calls them between steps of its warps.

A kernel keeps the state of each thread in a structure. Its phases are device functions that change that state; between
them the lanes of a warp shuffle and vote, or the threads of a block exchange elements in shared memory. In host C++, a
loop over the threads runs each phase, and another loop performs each step on the states of the whole block.

A kernel adds to its output, twice, rather than storing it. So the output shows whether a launch that was undone and run
again left anything behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .expressions import FLOATS, SCALARS, WIDE, Draw, Expressions, Place, Scope
from .statements import Function, Node, Statements, Struct, render
from .steps import Steps

BOTH = (Path(__file__).parent / "both.h").read_text()
# Words that a thread reads.
WORDS = 6
_MOST_FIELDS = 10


@dataclass
class Kernel:
    """A kernel: its definitions in order, and the phases and steps of its body, each with one text per compiler."""

    number: int
    threads: int
    blocks: int
    fields: tuple[Place, ...]
    definitions: list[Node]
    body: list[Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the kernel's name, which the host function shares."""
        return f"k{self.number}"

    @property
    def results(self) -> int:
        """Return the number of 64-bit words of the output."""
        return self.threads * self.blocks * len(self.fields)

    def text(self) -> str:
        """Return the kernel's source, which follows `BOTH`."""
        number, count = self.number, self.threads * self.blocks
        saves = "".join(
            f"    out[{place} * {count} + thread] += word(s.{one.text});\n" for place, one in enumerate(self.fields)
        )
        loads = "".join(f"    s.{one.text} = {_loaded(one.type, place)};\n" for place, one in enumerate(self.fields))
        members = "".join(f"    {one.type} {one.text};\n" for one in self.fields)
        device, host = (render(_of(self.body, side), "    ") for side in (0, 1))
        return f"""\
struct S{number} {{
{members}}};
INLINE void load(S{number} &s, const u32 *in, u32 thread) {{
    in += thread * {WORDS};
{loads}}}
INLINE void save(const S{number} &s, u64 *out, u32 thread) {{
{saves}}}
{render(self.definitions)}\
#ifdef __CUDACC__
extern "C" __global__ void {self.name}(const u32 *in, u64 *out) {{
    const u32 t = threadIdx.x, thread = blockIdx.x * {self.threads} + t, lane = t & 31;
    S{number} s;
    load(s, in, thread);
    save(s, out, thread);
{device}    save(s, out, thread);
}}
#else
extern "C" void {self.name}(const u32 *in, u64 *out) {{
    for (u32 block = 0; block < {self.blocks}; block++) {{
    const u32 first = block * {self.threads};
    static S{number} all[{self.threads}];
    for (u32 t = 0; t < {self.threads}; t++) load(all[t], in, first + t), save(all[t], out, first + t);
{host}    for (u32 t = 0; t < {self.threads}; t++) save(all[t], out, first + t);
    }}
}}
#endif
"""


def _of(body: Sequence[Node], side: int) -> list[Node]:
    """Return the statements for one compiler: in a step, the text on its `side` of the form feed."""
    found = []
    for node in body:
        head, tail = (text.split("\f")[side] if "\f" in text else text for text in (node.head, node.tail))
        found.append(Node(head, None if node.body is None else _of(node.body, side), tail))
    return found


def _loaded(type: str, place: int) -> str:
    """Return the expression that initializes a member of the state."""
    first, second = (f"in[{(place + more) % WORDS}]" for more in (0, 1))
    if type == "f32":
        return f"from_bits({first})" if place % 2 else f"(f32)(i32){first} * 0.37f"
    if type == "f64":
        wide = f"((u64){first} << 32 | {second})"
        return f"from_bits({wide})" if place % 2 else f"(f64)(i32){first} * 0.37"
    return f"({type})((u64){second} << 32 | {first})" if type.endswith("64") else f"({type}){first}"


def source(kernels: Sequence[Kernel]) -> str:
    """Return the source of several kernels."""
    return BOTH + "".join(kernel.text() for kernel in kernels)


def make(seed: int, number: int, size: int = 0) -> Kernel:
    """Return kernel `number` of a seed's sequence; `size` scales its functions, and 0 draws a random size."""
    return _Maker(Draw(seed, number), number, size).kernel()


class _Maker:
    """Draws the parts of one kernel."""

    def __init__(self, draw: Draw, number: int, size: int) -> None:
        self._draw = draw
        self._number = number
        self._size = size or draw.pick((1, 1, 1, 1, 2, 3))
        self._structs: dict[str, Struct] = {}
        self._functions: list[Function] = []
        self._definitions: list[Node] = []

    def kernel(self) -> Kernel:
        """Draw the whole kernel."""
        draw = self._draw
        steps = draw.chance(0.75)
        threads = 32 * (1 + draw.below(4)) if steps else 33 + draw.below(96)
        types = [draw.pick(SCALARS + WIDE) for _ in range(4 + draw.below(_MOST_FIELDS - 4))]
        # The first four members have types that steps and conditions need.
        types[:4] = ["u32", draw.pick(("i32", "i64")), "f32", draw.pick(("u32", "f64", "u64"))]
        fields = tuple(Place(f"m{place}", type) for place, type in enumerate(types))
        for place in range(draw.below(3)):
            self._struct(place)
        for place in range(draw.below(2 + self._size)):
            self._function(place)
        kernel = Kernel(self._number, threads, 1 + draw.below(3), fields, self._definitions)
        count = 2 + draw.below(2 + self._size) if steps else 0
        kernel.body.append(self._phase(0, kernel))
        maker = Steps(draw, fields, threads)
        for place in range(1, count + 1):
            step = maker.step()
            if draw.chance(0.12):  # a loop around a step and the phase before it
                loop = f"for (u32 round = 0; round < {2 + draw.below(3)}; round++) {{"
                kernel.body.append(Node(loop, [self._phase(place, kernel), step]))
            else:
                kernel.body += [step, self._phase(place, kernel)] if draw.chance(0.3) else [step]
        return kernel

    def _phase(self, place: int, kernel: Kernel) -> Node:
        """Define a function that changes the state of a thread, and return its call."""
        draw, number = self._draw, self._number
        name = f"p{number}_{place}"
        fields = (Place(f"s.{one.text}", one.type) for one in kernel.fields)
        scope = Scope(None, *fields, Place("thread", "u32", False))
        statements = Statements(draw, self._structs, self._functions)
        probes = [statements.expressions.probe(scope) for _ in range(1 + draw.below(5))]
        body = [Node(f"s.m0 = s.m0 * 3 + (u32)mixed(thread, word({probe}));") for probe in probes]
        body += statements.block(scope, 1 + draw.below(1 + 2 * self._size), 1 + draw.below(2))
        # The results of the phase go into the state.
        body += _mixed(scope)
        kind = draw.pick(("FUNCTION", "INLINE", "SEPARATE"))
        self._definitions.append(Node(f"{kind} void {name}(S{number} &s, u32 thread) {{", body))
        return Node(f"{name}(s, thread);\ffor (u32 t = 0; t < {kernel.threads}; t++) {name}(all[t], first + t);")

    def _struct(self, place: int) -> None:
        draw = self._draw
        name = f"T{self._number}_{place}"
        members: list[Place] = []
        lines, makes, assignments = [], [], []
        types = [draw.pick(SCALARS) for _ in range(2 + draw.below(4))]
        for index, type in enumerate(types):
            member, parameter = f"m{index}", f"a{index}"
            makes.append(type)
            if self._structs and index == 1 and draw.chance(0.5):
                inner = next(iter(self._structs.values()))
                lines.append(f"{inner.name} {member};")
                members += inner.places(member)
                makes[-1] = inner.name
                assignments.append(f"r.{member} = {parameter};")
            elif draw.chance(0.3):
                elements = draw.pick((2, 4))
                lines.append(f"{type} {member}[{elements}];")
                members.append(Place(member, type, True, elements))
                assignments.append(
                    f"for (u32 i = 0; i < {elements}; i++) r.{member}[i] = ({type})(i & 1 ? {parameter} : ({type})i);"
                )
            else:
                lines.append(f"{type} {member};")
                members.append(Place(member, type))
                assignments.append(f"r.{member} = {parameter};")
        parameters = ", ".join(f"{type} a{index}" for index, type in enumerate(makes))
        maker = Node(
            f"INLINE {name} make_{name}({parameters}) {{",
            [Node(text, fixed=True) for text in (f"{name} r;", *assignments, "return r;")],
        )
        self._definitions += [Node(f"struct {name} {{ {' '.join(lines)} }};"), maker]
        self._structs[name] = Struct(name, tuple(members), tuple(makes))

    def _function(self, place: int) -> None:
        """Define a function: it takes scalars, structures and pointers, and returns a scalar or a structure."""
        draw = self._draw
        name = f"f{self._number}_{place}"
        kinds = [draw.pick(SCALARS) for _ in range(1 + draw.below(3))]
        if self._structs and draw.chance(0.4):
            kinds.append(draw.pick(list(self._structs)))
        if draw.chance(0.3):
            kinds.append(f"{draw.pick(SCALARS)}*{draw.pick((2, 4))}")
        result = draw.pick(list(self._structs)) if self._structs and draw.chance(0.3) else draw.pick(SCALARS)
        scope, parameters = Scope(), []
        statements = Statements(draw, self._structs, self._functions)
        for index, kind in enumerate(kinds):
            element, _, count = kind.partition("*")
            parameters.append(f"{element} {'*' if count else ''}a{index}")
            statements.declare(scope, Place(f"a{index}", element, True, int(count or 0)))
        recursive = draw.chance(0.08)
        body: list[Node] = []
        if recursive:
            parameters.append("u32 depth")
            body.append(Node(f"if (depth == 0) return {statements.argument(scope, result)};", fixed=True))
            arguments = ", ".join(statements.argument(scope, kind) for kind in kinds)
            body.append(Node(f"{result} deeper = {name}({arguments}, depth - 1);"))
            statements.declare(scope, Place("deeper", result), whole=False)
        body += statements.block(scope, 1 + draw.below(2 * self._size), 1 + draw.below(2), result=result)
        body.append(Node(f"return {self._returned(statements, scope, result)};", fixed=True))
        kind = "SEPARATE" if recursive else draw.pick(("FUNCTION", "SEPARATE", "INLINE"))
        self._definitions.append(Node(f"{kind} {result} {name}({', '.join(parameters)}) {{", body))
        self._functions.append(Function(name, (*kinds, "u32%4") if recursive else tuple(kinds), result))

    def _returned(self, statements: Statements, scope: Scope, result: str) -> str:
        if result not in SCALARS:
            return statements.argument(scope, result)
        local = [place for place in scope.places if place.text[0] == "v" and place.type == result]
        value = Expressions(self._draw).value(scope, result, 3)
        if result[0] == "u":
            for place in local[-3:]:
                value += f" ^ {place.text}[0]" if place.count else f" ^ {place.text}"
            return f"({result})({value})"
        return value


def _mixed(scope: Scope) -> list[Node]:
    """Return statements that mix the last six local variables of a scope into the state."""
    local = [place for place in scope.places if place.text[0] in "v("][-6:]
    nodes = [Node("u64 mix = 1;", fixed=True)]
    for place in local:
        element = f"{place.text}[{place.count - 1}]" if place.count else place.text
        kind = place.type if place.type in (*WIDE, *FLOATS) else "i32"
        nodes.append(Node(f"mix = mixed(mix, word(({kind}){element}));"))
    return [*nodes, Node("s.m0 += (u32)(mix ^ mix >> 32);", fixed=True)] if local else []
