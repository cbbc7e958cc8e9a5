"""An XML file of NCCL -> a tree of elements that know their line. The file is hostile until it is parsed.

defusedxml refuses document types, and with them entities of any kind; size, depth, number of elements and of attributes are limited
while the file is read, so that a bomb costs no more than its own bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax import SAXException
from xml.sax.handler import ContentHandler

from defusedxml.common import DefusedXmlException
from defusedxml.sax import make_parser

from topologies.errors import RingscopeError, nearest, quoted

MAX_FILE = 16 * 2**20
MAX_DEPTH = 64
MAX_ELEMENTS = 100_000
MAX_ATTRIBUTES = 64
MAX_TEXT = 1000
"""Characters of a value; NCCL itself keeps 255."""
_CHUNK = 2**20
"""Bytes a step: limits stop a file early, and yet a token as long as the file is not looked at too often from its start."""


def shown(name: str) -> str:
    """A name out of a file, printable and not longer than 60 characters."""
    return quoted(name)[1:-1]


class ElementError(RingscopeError):
    """What is wrong with an element or a file, without the file's name; readers raise it again as an error of their own."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its tag, the line it starts in, its attributes as text, its children in order."""

    tag: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)

    def all(self, *tags: str) -> list[Element]:
        return [child for child in self.children if child.tag in tags]

    def text(self, key: str) -> str:
        return self.attributes.get(key, "")

    def fault(self, key: str, rule: str) -> ElementError:
        return ElementError(f"line {self.line}: <{shown(self.tag)}> {shown(key)}={quoted(self.text(key))}: {rule}")

    def whole(self, key: str, default: int | None, least: int, most: int) -> int:
        """A whole number from ``least`` to ``most``; ``default`` (None: it must stand there) where it is missing."""
        text = self.attributes.get(key)
        if text is None:
            if default is None:
                raise ElementError(f'line {self.line}: <{self.tag}> has no {key}; write a whole number, as {key}="{max(least, 0)}"')
            return default
        if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise self.fault(key, f"write a whole number from {least} to {most}")
        return int(text)

    def number(self, key: str, default: float, most: float) -> float:
        """A finite number from 0 to ``most``."""
        text = self.attributes.get(key)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,3})?", text, re.ASCII) or not 0 <= float(text) <= most:
            raise self.fault(key, f"write a number from 0 to {most:g}")
        return float(text)

    def one_of(self, key: str, known: tuple[str, ...]) -> str:
        if self.text(key) not in known:
            raise self.fault(key, f"not known{nearest(self.text(key), known)}")
        return self.text(key)


def read_elements(path: Path, root: str, what: str) -> Element:
    """The tree of a file whose outermost element is ``root``; ``what`` the file should be, for the ElementError of one that is not."""
    raw = _bytes(path, what)
    handler = _Tree(root, what)
    parser: Any = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    handler.locator = parser  # which fed parsers do not hand over themselves
    try:
        for start in range(0, len(raw), _CHUNK):
            parser.feed(raw[start : start + _CHUNK])
        parser.close()
    except ElementError:
        raise
    except DefusedXmlException:
        raise ElementError(f"line {parser.getLineNumber()}: declares a document type or an entity; {what} has none") from None
    except (SAXException, ValueError, LookupError) as error:  # malformed, or text in an encoding that is unknown or broken
        reason = error.getMessage() if isinstance(error, SAXException) else str(error)
        raise ElementError(f"line {parser.getLineNumber() or 1}: is not XML: {shown(reason)}; {what} is") from None
    assert handler.top is not None  # a file without an element is not XML
    return handler.top


def _bytes(path: Path, what: str) -> bytes:
    try:
        if not path.is_file():  # before opening: a pipe would block
            raise ElementError(f"there is no such file; name {what}" if not path.exists() else f"is not a regular file; name {what}")
        if path.stat().st_size > MAX_FILE:
            raise ElementError(f"has {path.stat().st_size} bytes; {what} has at most {MAX_FILE} (16 MiB)")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ElementError):
            raise
        raise ElementError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not raw.strip():
        raise ElementError(f"is empty; {what} has lines of XML")
    return raw


class _Tree(ContentHandler):
    def __init__(self, root: str, what: str) -> None:
        super().__init__()
        self.root, self.what = root, what
        self.locator: Any = None
        self.top: Element | None = None
        self.open: list[Element] = []
        self.count = 0

    def startElement(self, name: str, attrs: Any) -> None:
        line = self.locator.getLineNumber()
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise ElementError(f"line {line}: more than {MAX_ELEMENTS:,} elements; {self.what} has some hundred")
        if len(self.open) >= MAX_DEPTH:
            raise ElementError(f"line {line}: {quoted(name)} is nested more than {MAX_DEPTH} deep; {self.what} nests about ten deep")
        if not self.open and name != self.root:
            raise ElementError(f"line {line}: begins with <{shown(name)}>; {self.what} begins with <{self.root}>")
        if len(attrs) > MAX_ATTRIBUTES:
            raise ElementError(f"line {line}: <{shown(name)}> has {len(attrs)} attributes; at most {MAX_ATTRIBUTES}")
        element = Element(name, line, dict(attrs.items()))
        for key, value in element.attributes.items():
            if len(value) > MAX_TEXT:
                raise element.fault(key, f"has {len(value)} characters; at most {MAX_TEXT}")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.top = element
        self.open.append(element)

    def endElement(self, name: str) -> None:
        self.open.pop()
