"""Steps that the threads of a warp or block take collectively, as CUDA C++ and as host loops over their states.

A form feed separates the two texts of a step. In the host text, `all` is the array of the states of a block.
"""

from collections.abc import Sequence

from .expressions import FLOATS, WIDE, Draw, Expressions, Place, Scope
from .statements import Node


class Steps:
    """Draws steps of threads whose state has the members `fields`, the first of which is of type u32."""

    def __init__(self, draw: Draw, fields: Sequence[Place], threads: int) -> None:
        self._draw = draw
        self._expressions = Expressions(draw)
        self._fields = [one for one in fields if one.type in (*WIDE, *FLOATS)]
        self._threads = threads
        self._scope = Scope(None, *(Place(f"s.{one.text}", one.type) for one in fields), Place("lane", "u32", False))

    def step(self) -> Node:
        """Draw a step."""
        kinds = (self._shuffle, self._shuffle, self._shuffle, self._vote, self._vote, self._parts, self._parts)
        return self._draw.pick((*kinds, self._exchange, self._atomics, self._block_vote))()

    def _number(self) -> str:
        return self._expressions.value(self._scope, "u32", 1)

    def _condition(self) -> str:
        return self._expressions.condition(self._scope, 2)

    def _warps(self, arrays: str, gathers: str, gives: str) -> str:
        """Return a loop over warps, in which `gathers` runs for every lane before `gives` runs for any."""
        return (
            f"for (u32 w = 0; w < {self._threads}; w += 32) {{ {arrays} "
            f"for (u32 lane = 0; lane < 32; lane++) {{ auto &s = all[w + lane]; {gathers} }} "
            f"for (u32 lane = 0; lane < 32; lane++) {{ auto &s = all[w + lane]; {gives} }} }}"
        )

    def _block(self, arrays: str, gathers: str, gives: str) -> str:
        """Return two loops over the threads of a block, the first with `gathers` and the second with `gives`."""
        each = f"for (u32 t = 0; t < {self._threads}; t++) {{ auto &s = all[t]; const u32 lane = t & 31; (void)lane;"
        return f"{{ {arrays} {each} {gathers} }} {each} {gives} }} }}"

    def _two_fields(self) -> tuple[Place, Place]:
        """Return a field to read and one of the same type to write."""
        source = self._draw.pick(self._fields)
        return source, self._draw.pick([one for one in self._fields if one.type == source.type])

    def _shuffle(self) -> Node:
        draw = self._draw
        source, to = self._two_fields()
        mode, width = draw.pick(("idx", "up", "down", "xor")), draw.pick((32, 32, 32, 16, 8, 4, 2))
        amount = str(draw.below(32)) if draw.chance(0.5) else f"({self._number()}) & 31"
        name = "__shfl_sync" if mode == "idx" else f"__shfl_{mode}_sync"
        device = f"s.{to.text} = {name}(FULL, s.{source.text}, {amount}, {width});"
        host = self._warps(
            f"{source.type} x[32]; u32 n[32];",
            f"x[lane] = s.{source.text}; n[lane] = {amount};",
            f"s.{to.text} = x[source_{mode}(lane, n[lane], {width})];",
        )
        return Node(f"{device}\f{host}")

    def _vote(self) -> Node:
        draw = self._draw
        kind = draw.pick(("ballot", "any", "all", "match", "add", "min", "max", "and", "or", "xor"))
        if kind == "match":
            value = f"({self._number()}) & 3"
            device = f"__match_any_sync(FULL, {value})"
            arrays, gathers, gives = "u32 x[32];", f"x[lane] = {value};", "matching(x, FULL, lane)"
        elif kind in ("ballot", "any", "all"):
            value = self._condition()
            device = f"__{kind}_sync(FULL, {value})"
            results = {"ballot": "ballot(x, FULL)", "any": "(ballot(x, FULL) != 0)", "all": "(ballot(x, FULL) == FULL)"}
            arrays, gathers, gives = "bool x[32];", f"x[lane] = {value};", results[kind]
        else:
            type = draw.pick(("u32", "i32")) if kind in ("add", "min", "max") else "u32"
            value = self._expressions.value(self._scope, type, 1)
            device = f"__reduce_{kind}_sync(FULL, {value})"
            arrays, gathers, gives = f"{type} x[32];", f"x[lane] = {value};", f"reduced_{kind}(x, FULL)"
        host = self._warps(arrays, gathers, f"s.m0 = s.m0 * 5 + (u32){gives};")
        return Node(f"s.m0 = s.m0 * 5 + (u32){device};\f{host}")

    def _parts(self) -> Node:
        """Let the lanes of each side of a branch shuffle, vote or reduce among themselves."""
        parted, vote = self._condition(), self._condition()
        kind, mode = self._draw.pick(("add", "min", "max", "and", "or", "xor")), self._draw.pick(("lowest", "highest"))
        device = (
            f"{{ const bool c = {parted}; const u32 part = __ballot_sync(FULL, c);\n"
            f"      if (c) {{ s.m0 += __shfl_sync(part, s.m0, {mode}(part)); s.m0 ^= __ballot_sync(part, {vote}); }}\n"
            f"      else {{ s.m0 -= __reduce_{kind}_sync(~part, s.m0); }} }}"
        )
        host = (
            self._warps(
                "u32 x[32]; bool c[32]; u32 part = 0;",
                f"c[lane] = {parted}; part |= (u32)c[lane] << lane; x[lane] = s.m0;",
                f"if (c[lane]) s.m0 += x[{mode}(part)]; else s.m0 -= reduced_{kind}(x, ~part);",
            )[:-2]
            # The second vote reads the state as the shuffle has changed it.
            + f" bool y[32]; for (u32 lane = 0; lane < 32; lane++) {{ auto &s = all[w + lane]; y[lane] = {vote}; }}"
            " for (u32 lane = 0; lane < 32; lane++) if (c[lane]) all[w + lane].m0 ^= ballot(y, part); }"
        )
        return Node(f"{device}\f{host}")

    def _exchange(self) -> Node:
        """Give each thread another thread's element through shared memory."""
        source, to = self._two_fields()
        index = f"({self._number()}) % {self._threads}u"
        device = (
            f"{{ __shared__ {source.type} tile[{self._threads}]; tile[t] = s.{source.text}; __syncthreads();\n"
            f"      s.{to.text} = tile[{index}]; __syncthreads(); }}"
        )
        tile, gathers = f"{source.type} tile[{self._threads}];", f"tile[t] = s.{source.text};"
        return Node(f"{device}\f{self._block(tile, gathers, f's.{to.text} = tile[{index}];')}")

    def _atomics(self) -> Node:
        """Combine the numbers of all threads by atomics in shared memory, whose order makes no difference."""
        index, value, read = self._number(), self._number(), self._number()
        name = self._draw.pick(("Add", "Max", "Min", "Xor", "Or", "And"))
        sign = {"Add": "+", "Xor": "^", "Or": "|", "And": "&"}.get(name)
        combined = f"o {sign} v" if sign else f"{name.lower()}(o, v)"
        device = (
            f"{{ __shared__ u32 tile[8]; if (t < 8) tile[t] = 77 * t; __syncthreads();\n"
            f"      atomic{name}(&tile[({index}) & 7], {value}); __syncthreads();\n"
            f"      s.m0 ^= tile[({read}) & 7]; __syncthreads(); }}"
        )
        tile = "u32 tile[8]; for (u32 t = 0; t < 8; t++) tile[t] = 77 * t;"
        gathers = f"const u32 v = {value}; u32 &o = tile[({index}) & 7]; o = {combined};"
        return Node(f"{device}\f{self._block(tile, gathers, f's.m0 ^= tile[({read}) & 7];')}")

    def _block_vote(self) -> Node:
        kind, condition = self._draw.pick(("count", "and", "or")), self._condition()
        results = {"count": "n", "and": f"(n == {self._threads})", "or": "(n != 0)"}
        # __syncthreads_and and __syncthreads_or may return 1 or any other number that is not 0.
        truth = "" if kind == "count" else " != 0"
        device = f"s.m0 += (u32)(__syncthreads_{kind}({condition}){truth});"
        return Node(f"{device}\f{self._block('u32 n = 0;', f'n += {condition};', f's.m0 += (u32){results[kind]};')}")
