"""What Python's parsers of documents read, and how a server says so."""

import gzip
import json
import math
import zlib
from xml.etree import ElementTree

HEADERS = ["x-role", "x-user", "x-scope", "x-key"]


def add(read, field, *values):
    read.setdefault(field, []).extend(str(value) for value in values)


def decoded(coding, body):
    """Most middleware undoes gzip before an application reads."""
    if (coding or "").strip().lower() == "gzip":
        try:
            return gzip.decompress(body)
        except (OSError, EOFError, zlib.error):
            pass
    return body


def documents(read, body):
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        members = None
    if isinstance(members, dict):
        total = members.get("total")
        if isinstance(total, str):
            try:
                total = float(total)
            except ValueError:
                total = None
        if isinstance(total, (int, float)) and not isinstance(total, bool):
            try:
                number = float(total)
            except OverflowError:
                number = math.inf
            add(read, "json.total", "inf" if number == math.inf else number)
        if isinstance(members.get("status"), str):
            add(read, "json.status", members["status"])
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        return
    if root.tag.rpartition("}")[2] != "order":
        return
    for name in ["total", "status"]:
        # `{*}` is any namespace, and none.
        for child in root.findall("{*}" + name):
            add(read, "xml." + name, child.text or "", "".join(child.itertext()))


def text_of(read):
    return json.dumps(read).encode()
