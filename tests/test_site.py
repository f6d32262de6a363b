"""The site: its commands run as they stand, and it builds with every link leading somewhere."""

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gibo.cli import main

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)


def run_commands(text, folder):
    for line in text.strip().splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "gibo", "only commands of gibo are run"
        command = [sys.executable, "-m", "gibo", *words[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)


def test_the_commands_of_the_gallery(tmp_path):
    (text,) = blocks("gallery.md", "sh")
    run_commands(text, tmp_path)
    assert "the cup broke" in (tmp_path / "coffee.csv").read_text()


def test_the_commands_of_runs_and_integrations(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("bench.toml").write_text("[parameters.gain]\nstart = 1.0\n[parameters.damping]\nstart = 0.1\n")
    Path("earlier.csv").write_text("gain,damping,value\n1.5,0.2,7.5\n")
    assert main(["init", "runs/table", "--dim", "2"]) == 0
    for text in (*blocks("runs.md", "sh"), *blocks("integrations.md", "sh")):
        for line in text.strip().splitlines():
            words = shlex.split(line, comments=True)
            assert (words[0], main(words[1:])) == ("gibo", 0), (line, capsys.readouterr().err)
    values = [row.split(",")[5] for row in Path("bench.csv").read_text().splitlines()]
    assert values[0] == "value"
    assert {"1.27", "11.9", "7.5"} <= set(values)
    assert "12.7" not in values  # it was corrected
    assert "the belt slipped" not in Path("bench.csv").read_text()  # that was taken back


def test_from_an_environment_to_a_robot(tmp_path):
    environment, robot, _ = blocks("policies.md", "python")
    (tmp_path / "my_arm.py").write_text(environment)
    (commands,) = blocks("policies.md", "sh")
    run_commands(commands, tmp_path)
    done = subprocess.run([sys.executable, "-c", robot], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert not (tmp_path / "policy.json").exists()  # it took the one that was trained


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
