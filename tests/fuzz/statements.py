"""Random statements: variables, arrays, structures, pointers, branches, loops, switches and calls.

Every variable is initialised where it is declared, and every loop has its counter in its head. So any statement can be
left out: if the rest compiles, it is still well defined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .expressions import SCALARS, WIDE, Draw, Expressions, Place, Scope

# The maximum number of times that a statement runs: the product of the iterations of the loops around it.
_MOST_ITERATIONS = 24


@dataclass
class Node:
    """A statement, or a block of statements between a head and a tail; a `fixed` node can't be left out."""

    head: str
    body: list[Node] | None = None
    tail: str = "}"
    fixed: bool = False


def render(nodes: Sequence[Node], indent: str = "") -> str:
    """Return the text of statements."""
    lines = []
    for node in nodes:
        lines.append(f"{indent}{node.head}\n")
        if node.body is not None:
            lines.append(render(node.body, indent + "    "))
            lines.append(f"{indent}{node.tail}\n")
    return "".join(lines)


@dataclass(frozen=True)
class Struct:
    """A structure; its members, including those of nested structures, are places relative to it.

    ``make_NAME`` constructs one from values of the types in `makes`.
    """

    name: str
    members: tuple[Place, ...]
    makes: tuple[str, ...]

    def places(self, prefix: str) -> list[Place]:
        """Return the members of a variable of this type, whose text is `prefix`."""
        return [Place(f"{prefix}.{one.text}", one.type, True, one.count) for one in self.members]


@dataclass(frozen=True)
class Function:
    """A function that can be called.

    Its parameters are scalars, structures, pointers to elements such as ``i32*4``, or scalars below a limit such as
    ``u32%4``.
    """

    name: str
    parameters: tuple[str, ...]
    result: str


class Statements:
    """Draws the statements of one function."""

    def __init__(self, draw: Draw, structs: Mapping[str, Struct], functions: Sequence[Function]) -> None:
        self.draw = draw
        self.expressions = Expressions(draw)
        self._structs = structs
        self._functions = functions
        self._names = 0
        self._calls = 0

    def name(self) -> str:
        """Return an unused variable name."""
        self._names += 1
        return f"v{self._names}"

    def block(self, scope: Scope, count: int, depth: int, iterations: int = 1, result: str = "") -> list[Node]:
        """Return about `count` statements; ``result`` is the type that an early return returns."""
        nodes: list[Node] = []
        for _ in range(count):
            nodes += self._statement(scope, depth, iterations, result)
        return nodes

    def _statement(self, scope: Scope, depth: int, iterations: int, result: str) -> list[Node]:
        draw = self.draw
        simple = (self._scalar, self._assignment, self._assignment, self._assignment, self._array, self._pointer)
        if self._structs and draw.chance(0.14):
            return self._struct(scope)
        if self._functions and self._calls < 4 and iterations <= 8 and draw.chance(0.18):
            return self._call(scope)
        if depth > 0 and draw.chance(0.38):
            kind = draw.pick((self._branch, self._branch, self._loop, self._loop, self._switch, self._until))
            return kind(scope, depth - 1, iterations, result)
        return draw.pick(simple)(scope)

    # --- declarations and assignments

    def _scalar(self, scope: Scope) -> list[Node]:
        type, name = self.draw.pick(SCALARS + WIDE), self.name()
        value = self.expressions.value(scope, type, 3)
        scope.places.append(Place(name, type))
        return [Node(f"{type} {name} = {value};")]

    def _assignment(self, scope: Scope) -> list[Node]:
        draw = self.draw
        place = draw.pick([place for place in scope.places if place.assignable])
        to, value = self.expressions.read(scope, place, 1), self.expressions.value(scope, place.type, 3)
        operators = ("=", "=", "=", "^=", "|=", "&=", "+=", "-=") if place.type[0] == "u" else ("=",)
        return [Node(f"{to} {draw.pick(operators)} {value};")]

    def _array(self, scope: Scope) -> list[Node]:
        draw = self.draw
        type, count, name, index = draw.pick(SCALARS), draw.pick((2, 4, 4, 8, 16)), self.name(), self.name()
        array = Place(name, type, True, count)
        if count <= 4:
            values = ", ".join(self.expressions.value(scope, type, 1) for _ in range(count))
            nodes = [Node(f"{type} {name}[{count}] = {{{values}}};")]
        else:
            value = self.expressions.value(Scope(scope, Place(index, "u32", False)), type, 2)
            filling = f"for (u32 {index} = 0; {index} < {count}; {index}++) {name}[{index}] = {value};"
            nodes = [Node(f"{type} {name}[{count}] = {{}};"), Node(filling)]
        scope.places.append(array)
        return nodes

    def _pointer(self, scope: Scope) -> list[Node]:
        draw = self.draw
        places = [place for place in scope.places if place.assignable]
        first = draw.pick(places)
        second = draw.pick([place for place in places if place.type == first.type])
        one, other = (self.expressions.read(scope, place, 1) for place in (first, second))
        name = self.name()
        node = Node(f"{first.type} *{name} = {self.expressions.condition(scope, 1)} ? &{one} : &{other};")
        scope.places.append(Place(f"(*{name})", first.type))
        return [node]

    def _struct(self, scope: Scope) -> list[Node]:
        draw = self.draw
        type, name = draw.pick(list(self._structs)), self.name()
        node = Node(f"{type} {name} = {self.argument(scope, type)};")
        others = [place for place in scope.structs if place.type == type]
        self.declare(scope, Place(name, type))
        if others and draw.chance(0.4):  # copied back on a condition
            copy = Node(f"if ({self.expressions.condition(scope, 2)}) {draw.pick(others).text} = {name};")
            return [node, *self._assignment(scope), copy]
        return [node]

    def declare(self, scope: Scope, place: Place, whole: bool = True) -> None:
        """Add a variable to a scope: a scalar, an array, or a structure with its members, and `whole` if copyable."""
        struct = self._structs.get(place.type)
        scope.places.extend(struct.places(place.text) if struct else [place])
        if struct and whole:
            scope.structs.append(place)

    def argument(self, scope: Scope, type: str) -> str:
        """Return an argument for a parameter: a scalar, a structure, or an array; "" if the scope has no such array."""
        draw = self.draw
        kind, _, limit = type.partition("%")
        if limit:
            return f"(({self.expressions.value(scope, kind, 2)}) % {limit})"
        element, _, count = type.partition("*")
        if count:
            arrays = [p.text for p in scope.places if p.type == element and p.count >= int(count) and p.assignable]
            return draw.pick(arrays) if arrays else ""
        if type not in self._structs:
            return self.expressions.value(scope, type, 2)
        others = [place.text for place in scope.structs if place.type == type]
        if others and draw.chance(0.5):
            return draw.pick(others)
        return f"make_{type}({', '.join(self.argument(scope, made) for made in self._structs[type].makes)})"

    # --- control flow

    def _branch(self, scope: Scope, depth: int, iterations: int, result: str) -> list[Node]:
        draw = self.draw
        condition = self.expressions.condition(scope, 2)
        if result and iterations == 1 and draw.chance(0.12):
            return [Node(f"if ({condition}) return {self.argument(scope, result)};")]
        then = Node(f"if ({condition}) {{", self.block(Scope(scope), 1 + draw.below(3), depth, iterations, result))
        if draw.chance(0.5):
            return [then]
        otherwise = Node("else {", self.block(Scope(scope), 1 + draw.below(2), depth, iterations, result))
        # One node, to be left out as a whole, because nothing may come between the `if` and its `else`.
        return [Node("{", [then, otherwise])]

    def _loop(self, scope: Scope, depth: int, iterations: int, result: str) -> list[Node]:
        draw = self.draw
        most = 2 + draw.below(7)
        if iterations * most > _MOST_ITERATIONS:
            return self._assignment(scope)
        counter = self.name()
        bound = str(most) if draw.chance(0.4) else f"(({self.expressions.value(scope, 'u32', 2)}) % {most + 1}u)"
        if draw.chance(0.5):
            head = f"for (u32 {counter} = 0, {counter}_end = {bound}; {counter} < {counter}_end; {counter}++) {{"
        else:
            head = f"for (u32 {counter} = {bound}; {counter}-- > 0;) {{"
        return [Node(head, self._repeated(scope, counter, depth, iterations * most))]

    def _until(self, scope: Scope, depth: int, iterations: int, result: str) -> list[Node]:
        """Draw a loop that ends at a condition on the data, or at the latest when its counter reaches a limit."""
        draw = self.draw
        most = 2 + draw.below(6)
        if iterations * most > _MOST_ITERATIONS:
            return self._assignment(scope)
        counter = self.name()
        condition = self.expressions.condition(scope, 2)
        counts = draw.chance(0.5)
        body = self._repeated(scope, counter, depth, iterations * most)
        if counts:
            return [Node(f"for (u32 {counter} = 0; {counter} < {most} && {condition}; {counter}++) {{", body)]
        # The condition of a do loop is outside the scope of its body, and so must be the counter.
        whole = Node("do {", body, f"}} while (++{counter} < {most} && {condition});")
        return [Node("{", [Node(f"u32 {counter} = 0;", fixed=True), whole])]

    def _repeated(self, outer: Scope, counter: str, depth: int, iterations: int) -> list[Node]:
        draw, scope = self.draw, Scope(outer, Place(counter, "u32", False))
        # The jump may be placed before the body's declarations, so its condition reads only outer places.
        leave = Node(f"if ({self.expressions.condition(scope, 2)}) {draw.pick(('break', 'continue'))};")
        body = self.block(scope, 1 + draw.below(3), depth, iterations)
        if draw.chance(0.5):
            body.insert(draw.below(len(body) + 1), leave)
        return body

    def _switch(self, scope: Scope, depth: int, iterations: int, result: str) -> list[Node]:
        draw = self.draw
        count = draw.pick((3, 4, 6, 8))
        apart = draw.pick((1, 1, 1, 37))
        cases = []
        for number in range(count):
            if draw.chance(0.12):
                continue
            body = self.block(Scope(scope), 1 + draw.below(2), 0 if draw.chance(0.7) else depth, iterations)
            label = "default" if number == count - 1 and draw.chance(0.6) else f"case {number * apart}"
            cases.append(Node(f"{label}: {{", body, "}" if draw.chance(0.3) else "} break;"))
        value = f"(({self.expressions.value(scope, 'u32', 2)}) % {count}u)"
        return [Node(f"switch ({value}{f' * {apart}' if apart > 1 else ''}) {{", cases)]

    # --- calls

    def _call(self, scope: Scope) -> list[Node]:
        draw = self.draw
        function = draw.pick(self._functions)
        arguments = [self.argument(scope, type) for type in function.parameters]
        if not all(arguments):  # the scope has no array for a pointer
            return self._array(scope)
        self._calls += 1
        name = self.name()
        self.declare(scope, Place(name, function.result))
        return [Node(f"{function.result} {name} = {function.name}({', '.join(arguments)});")]
