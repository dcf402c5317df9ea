"""What the reference's generator, Griffe, has to be told of classes: the texts in `__slots__`, the fields of tuples."""

import ast
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Documents attributes that a class declares in other ways than Griffe reads."""

    def on_class_members(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        """Complete a class whose members are known."""
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
                attribute.value = None  # the expression in __init__ tells a reader less than the text does
            attribute.labels.difference_update({"class-attribute", "instance-attribute"})
        if any(str(base).endswith("NamedTuple") for base in cls.bases):
            cls.set_member("__init__", maker(cls))


def slots(node: ast.ClassDef) -> dict[str, str]:
    """Return the texts of a class's `__slots__`, where it is a dict, by the names of the attributes."""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Dict()):
                return ast.literal_eval(statement.value)
    return {}


def maker(cls: griffe.Class) -> griffe.Function:
    """Return the function that makes a tuple of a class from its fields."""
    kind = griffe.ParameterKind.positional_or_keyword
    fields = [
        griffe.Parameter(name, annotation=field.annotation, kind=kind, default=field.value)
        for name, field in cls.attributes.items()
        if field.annotation is not None and not field.has_labels("property")
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(griffe.Parameter("self", kind=kind), *fields))
