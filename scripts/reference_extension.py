"""Extension for Griffe, the reference's generator, which does not read `__slots__` texts or fields of named tuples."""

import ast
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Griffe extension for attributes that a class declares in ways that Griffe does not read."""

    def on_class_members(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        """Complete the attributes of a class once Griffe has collected its members."""
        texts = slots(node)
        given = cls.members["__init__"].parameters if "__init__" in cls.members else griffe.Parameters()
        for name, attribute in cls.members.items():
            if not isinstance(attribute, griffe.Attribute):
                continue
            if "instance-attribute" in attribute.labels and "class-attribute" not in attribute.labels:
                if name in texts:
                    attribute.docstring = griffe.Docstring(texts[name], parent=attribute)
                if attribute.annotation is None and name in given:
                    attribute.annotation = given[name].annotation
                attribute.value = None  # the expression in __init__ is less useful to readers than the text
            attribute.labels.difference_update({"class-attribute", "instance-attribute"})
        if any(str(base).endswith("NamedTuple") for base in cls.bases):
            cls.set_member("__init__", maker(cls))


def slots(node: ast.ClassDef) -> dict[str, str]:
    """Return the texts of a class's `__slots__` by attribute name, or an empty dict if `__slots__` is not a dict."""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Dict()):
                return ast.literal_eval(statement.value)
    return {}


def maker(cls: griffe.Class) -> griffe.Function:
    """Return the `__init__` of a named tuple, which takes one parameter per field."""
    kind = griffe.ParameterKind.positional_or_keyword
    fields = [
        griffe.Parameter(name, annotation=field.annotation, kind=kind, default=field.value)
        for name, field in cls.attributes.items()
        if field.annotation is not None and not field.has_labels("property")
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(griffe.Parameter("self", kind=kind), *fields))
