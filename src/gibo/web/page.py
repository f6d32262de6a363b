"""The page as one HTML text with markup, style, program and chart library; it loads nothing from elsewhere.

Its content security policy lists the hashes of its scripts and styles, so that no text of a run can become a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

STYLES = ("vendor/uPlot.min.css", "page/page.css")
SCRIPTS = (
    "vendor/uPlot.iife.min.js",
    *(f"page/{name}.js" for name in ("base", "charts", "panels", "views", "table", "runs", "app")),
)


class Page(NamedTuple):
    """HTML before and after the page's initial data, and its content security policy."""

    head: str
    tail: str
    policy: str

    def html(self, data: Any = None) -> str:
        """The page; with a snapshot as data it needs no server."""
        # "<" is the only character that could end the element.
        text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
        return self.head + text + self.tail


@cache
def page(alone: bool = False) -> Page:
    """The page of a server; or the page of a file, which may not connect anywhere."""
    markup = _read("page/page.html")
    styles, scripts = list(map(_read, STYLES)), list(map(_read, SCRIPTS))
    connect = "'none'" if alone else "'self'"
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; connect-src {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    licence = "\n".join(["uPlot, the chart library in this page:", _read("vendor/LICENSE").strip()])
    parts = {
        "<!-- policy -->": meta if alone else "",
        "<!-- style -->": "\n".join(f"<style>{text}</style>" for text in styles),
        "<!-- licence -->": f"<!--\n{licence}\n-->",
        "<!-- script -->": "\n".join(f"<script>{text}</script>" for text in scripts),
    }
    for mark, text in parts.items():
        markup = markup.replace(mark, text, 1)
    head, tail = markup.split("<!-- data -->", 1)
    start = '<script type="application/json" id="data">'
    return Page(head + start, "</script>" + tail, policy if alone else f"{policy}; frame-ancestors 'none'")


def _read(name: str) -> str:
    return files("gibo.web").joinpath(name).read_text(encoding="utf-8")


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)
