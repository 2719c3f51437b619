"""Small changes to Python, found in its syntax tree: operators, numbers, conditions, arguments, statements."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence

from .edits import OTHER_NAMES, Edit, other_number, swap

OTHER_OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.MatMult: ("@", "*"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript)
DELETED = (ast.AugAssign, ast.Delete, ast.Raise, ast.Assert)


def python_edits(text: str) -> list[Edit]:
    """Every change, in the order of the tree. Raises SyntaxError for a text that is not Python."""
    return [edit for node in ast.walk(ast.parse(text)) for edit in EditCollector(text).edits(node)]


class EditCollector:
    """The changes to single nodes of a tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0, *itertools.accumulate(len(line) for line in self.lines)]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node stands in the text."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())  # ast counts bytes

    def edits(self, node: ast.AST) -> Iterator[Edit]:
        """The changes to one node, those to its children aside."""
        find = getattr(self, f"_{type(node).__name__.lower()}", None)
        if find:
            yield from find(node)
        if isinstance(node, DELETED):
            yield self._replaced(node, "pass")

    def _replaced(self, node: ast.AST, new: str | ast.AST) -> Edit:
        """A node replaced by a text, or by one of its own parts."""
        if isinstance(new, ast.AST):
            start, end = self.span(new)
            part = self.text[start:end]
            new = part if isinstance(new, SIMPLE) else f"({part})"
        return Edit(*self.span(node), new)

    def _operator(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> Iterator[Edit]:
        """Another operator between two operands."""
        old, new = OTHER_OPERATORS.get(type(operator), ("", ""))
        start, end = self.span(left)[1], self.span(right)[0]
        if old and (found := re.search(rf"(?<![\w*/]){re.escape(old)}(?![\w*/])", self.text[start:end])):
            yield Edit(start + found.start(), start + found.end(), new)

    def _swapped(self, nodes: Sequence[ast.AST]) -> Iterator[Edit]:
        for first, second in itertools.pairwise(nodes):
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                yield swap(self.text, self.span(first), self.span(second))

    def _dropped(self, nodes: Sequence[ast.AST]) -> Iterator[Edit]:
        """Each of several elements left out, with the comma at its side."""
        for before, after in itertools.pairwise(nodes):
            yield Edit(self.span(before)[0], self.span(after)[0], "")
        if len(nodes) > 1:
            yield Edit(self.span(nodes[-2])[1], self.span(nodes[-1])[1], "")

    def _binop(self, node: ast.BinOp) -> Iterator[Edit]:
        yield from self._operator(node.left, node.op, node.right)
        yield self._replaced(node, node.left)
        yield self._replaced(node, node.right)

    def _compare(self, node: ast.Compare) -> Iterator[Edit]:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            yield from self._operator(left, operator, right)

    def _boolop(self, node: ast.BoolOp) -> Iterator[Edit]:
        for left, right in itertools.pairwise(node.values):
            yield from self._operator(left, node.op, right)
        for value in node.values:
            yield self._replaced(node, value)

    def _unaryop(self, node: ast.UnaryOp) -> Iterator[Edit]:
        yield self._replaced(node, node.operand)

    def _constant(self, node: ast.Constant) -> Iterator[Edit]:
        start, end = self.span(node)
        if isinstance(node.value, bool):
            yield Edit(start, end, str(not node.value))
        elif isinstance(node.value, int | float) and (new := other_number(self.text[start:end])):
            yield Edit(start, end, new)

    def _name(self, node: ast.Name) -> Iterator[Edit]:
        if isinstance(node.ctx, ast.Load) and node.id in OTHER_NAMES:
            yield self._replaced(node, OTHER_NAMES[node.id])

    def _attribute(self, node: ast.Attribute) -> Iterator[Edit]:
        end = self.span(node)[1]
        if node.attr in OTHER_NAMES:
            yield Edit(end - len(node.attr), end, OTHER_NAMES[node.attr])

    def _call(self, node: ast.Call) -> Iterator[Edit]:
        yield from self._swapped(node.args)
        arguments = [*node.args, *node.keywords]
        dropped = list(self._dropped(arguments)) or [Edit(*self.span(only), "") for only in arguments]
        yield from dropped[len(node.args) :]
        if isinstance(node.func, ast.Attribute) and not arguments and not isinstance(node.func.value, ast.Call):
            yield self._replaced(node, node.func.value)

    def _elements(self, node: ast.List | ast.Tuple | ast.Set) -> Iterator[Edit]:
        if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            if not isinstance(node, ast.Set):  # which has no order
                yield from self._swapped(node.elts)
            yield from self._dropped(node.elts)

    _list = _tuple = _set = _elements

    def _return(self, node: ast.Return) -> Iterator[Edit]:
        if isinstance(node.value, ast.Tuple):
            for element in node.value.elts:
                yield self._replaced(element, "None")
        elif node.value and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield self._replaced(node.value, "None")

    def _if(self, node: ast.If) -> Iterator[Edit]:
        for value in ("True", "False"):
            yield self._replaced(node.test, value)

    def _ifexp(self, node: ast.IfExp) -> Iterator[Edit]:
        yield self._replaced(node, node.body)
        yield self._replaced(node, node.orelse)

    def _comprehension(self, node: ast.comprehension) -> Iterator[Edit]:
        for condition in node.ifs:
            yield self._replaced(condition, "True")

    def _augassign(self, node: ast.AugAssign) -> Iterator[Edit]:
        yield from self._operator(node.target, node.op, node.value)

    def _assign(self, node: ast.Assign) -> Iterator[Edit]:
        if not isinstance(node.targets[0], ast.Name | ast.Tuple):  # without that, a name is undefined
            yield self._replaced(node, "pass")

    def _expr(self, node: ast.Expr) -> Iterator[Edit]:
        if not isinstance(node.value, ast.Constant):
            yield self._replaced(node, "pass")

    def _functiondef(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[Edit]:
        for decorator in node.decorator_list:
            start, end = self.span(decorator)
            yield Edit(self.text.rindex("@", 0, start), end, "")

    _classdef = _functiondef
