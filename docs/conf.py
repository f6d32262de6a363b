"""How the site is made: `make docs`. Nothing is loaded from elsewhere, neither when it is built nor when it is read."""

import os
import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import gibo

project, author, copyright, release = (
    "gibo",
    "The gibo developers",
    "The gibo developers, MIT licence",
    gibo.__version__,
)
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["toc.not_included"]  # a page that no list has yet is found by search and links
html_theme, html_title = "furo", "gibo"
html_static_path, html_css_files = ["style"], ["gibo.css"]
html_show_sourcelink = html_copy_source = html_show_search_summary = False  # a browser cannot fetch from files
default_role = "literal"
autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints = "none"
napoleon_use_ivar = napoleon_use_rtype = False
html_math_renderer = "mathml"


def links_beside_the_site(app, name, source):
    """Texts of the repository that are no pages here, such as the tables of a study, are copied, as programs are."""
    source[0] = re.sub(r"\]\((\.\./[^)#\s]+\.md)(#[^)]*)?\)", r"](path:\1)", source[0])


def help_of_commands(app, name, source):
    """The reference of the command line, from its parser."""
    if name != "commands":
        return
    from gibo.cli import commands_of, parser_of

    os.environ["COLUMNS"] = "96"
    commands = {name: each for name, each in commands_of(parser_of()).items() if name not in ("reproduce", "figures")}
    texts = [f"## gibo {name}\n\n```text\n{each.format_help()}```\n" for name, each in commands.items()]
    source[0] = source[0].replace("<!-- commands -->", "\n".join(texts))


def tables_of_the_journal(app, name, source):
    """What each table of a journal holds, and its columns, from the module that makes them."""
    if name != "journal":
        return
    from gibo.runs import store

    meanings = "\n".join(re.findall(r"^    .*$", store.__doc__, re.MULTILINE))
    columns = [f"| `{table}` | {', '.join(names)} |" for table, names in store.COLUMNS.items()]
    made = [f"```text\n{textwrap.dedent(meanings)}\n```\n", "| table | columns |", "|---|---|", *columns]
    source[0] = source[0].replace("<!-- tables -->", "\n".join(made))


def setup(app):
    """Formulas as MathML, which browsers draw themselves."""
    from latex2mathml.converter import convert

    app.connect("source-read", links_beside_the_site)
    app.connect("source-read", help_of_commands)
    app.connect("source-read", tables_of_the_journal)

    def drawn(display):
        def visit(self, node):
            from docutils.nodes import SkipNode

            formula = convert(node.astext(), display=display)
            self.body.append(f'<div style="margin:1em 0">{formula}</div>' if display == "block" else formula)
            raise SkipNode

        return visit

    app.add_html_math_renderer("mathml", (drawn("inline"), None), (drawn("block"), None))
