"""The site builds, and every link leads somewhere."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


class Links(HTMLParser):
    """Of a page: what it leads to, what it loads, and what can be led to."""

    def __init__(self, page):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in ("script", "img") and given.get("src"):
            self.loads.append(given["src"])
        elif tag == "link" and given.get("rel") == "stylesheet":
            self.loads.append(given["href"])


def test_the_site_builds_and_every_link_leads_somewhere(tmp_path):
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(module, reason=f"{module} is not installed (the extra docs)")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(site)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    pages = {page: Links(page) for page in site.glob("*.html")}
    assert {page.stem for page in DOCS.glob("*.md")} <= {page.stem for page in pages}
    for page, found in pages.items():
        for name in found.loads:
            assert (site / name.partition("?")[0]).exists(), f"{page.name} loads {name}, which is not part of the site"
        for link in found.links:
            path, _, anchor = link.partition("#")
            if "://" in link or path.startswith("mailto:"):
                continue
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name}: {link} leads nowhere"
            if anchor and target in pages and page.name not in ("genindex.html", "search.html"):
                assert anchor in pages[target].anchors, f"{page.name}: {link} leads to no such place"
