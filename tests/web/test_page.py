"""The page in a real browser: what it shows, that it follows a run, and what it may not do."""

import csv
import io
import json
import re
import threading
from importlib.resources import files

import numpy as np
import pytest
from watching import HOSTILE, Deeds, until

import gibo
from gibo.runs import manual
from gibo.runs.journal import Journal
from gibo.web.watch import Watch, report


def drawn(tab, count):
    """Wait until the chart has drawn so many points."""
    tab.wait_for_selector(f'#chart-values[data-drawn="{count}"]')


def told(folder):
    with Journal.read(folder) as journal:
        return [e for e, _ in journal.evaluations()]


def manual_run(folder):
    manual.create(folder, manual.Description(["gain", "on"], [0.0] * 2, [1.0] * 2, [-5.0] * 2, [5.0] * 2))
    return manual.ask(folder).queries


def test_a_running_run_is_followed(running, tab):
    folder, gate = running
    gate.allowed.release(2)
    with Watch(folder) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 2)
        assert tab.inner_text("#state") == "Running"
        assert "being evaluated" in tab.inner_text("#now-note")
        gate.allowed.release(10)
        drawn(tab, 12)
        assert "12 / 1000" in tab.inner_text("#tiles")
        assert tab.locator("#table tbody tr").count() == 12
        # One snapshot, then increments: nothing is read twice.
        assert len([url for url in tab.requests if "/api/snapshot" in url]) == 1
        assert tab.evaluate("run.evaluations.value") == [each.value for each in told(folder)]


def test_what_it_shows_of_a_finished_run(finished, tab):
    with Watch(finished) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 60)
        assert tab.inner_text("#state") == "Ended"
        assert "the budget of 60 evaluations is spent" in tab.inner_text("#what")
        failures = [each for each in told(finished) if each.failure is not None]
        assert failures
        assert f"{len(failures)} failed" in tab.inner_text("#tiles")
        assert tab.locator("#gradient tbody tr").count() == 4
        assert tab.locator("#chart-sure canvas").count() == 1
        best = manual.status(finished).result.best
        tab.click("[data-form=JSON]")
        assert json.loads(tab.evaluate("navigator.clipboard.readText()")) == dict(
            zip(["x0", "x1", "x2", "x3"], best.x.tolist(), strict=True)
        )
        assert tab.locator("#actions button").count() == 0


def test_a_hostile_message_stays_text(finished, tab):
    with Watch(finished) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 60)
        tab.fill("#search", "failed")
        until(tab, "document.querySelectorAll('#table tbody tr').length < 50")
        texts = tab.locator("#table .failed").all_inner_texts()
        assert texts
        assert all(HOSTILE in text for text in texts)
        assert tab.locator("#table img, #advice img, #tip img").count() == 0
        assert tab.title() != "owned"


def test_the_table_is_searched_sorted_paged_and_saved(finished, tab):
    with Watch(finished) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 60)
        assert tab.locator("#table tbody tr").count() == 50
        tab.click("#next")
        assert tab.inner_text("#place") == "51–60 of 60"
        tab.click("#table [data-column=value]")
        top = tab.locator("#table tbody tr").first.locator("td").nth(4).inner_text()
        values = [each.value for each in told(finished) if each.value is not None]
        assert float(top.replace("\u2212", "-")) == pytest.approx(max(values), rel=1e-5)
        with tab.expect_download() as saved:
            tab.click("#csv")
        rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text())))
        assert len(rows) == 60
        with_value = [row for row in rows if row["value"]]
        assert [float(row["value"]) for row in with_value] == values
        assert np.array_equal(
            [[float(row[f"x{i}"]) for i in range(4)] for row in rows], [each.query.x for each in told(finished)]
        )
        assert {row["failure"] for row in rows} == {"", f"RuntimeError: {HOSTILE}"}


def test_light_dark_and_narrow(finished, tab):
    with Watch(finished) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 60)
        light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.click("#theme")
        tab.click("#theme")
        assert tab.inner_text("#theme") == "Theme: dark"
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != light
        drawn(tab, 60)
        tab.set_viewport_size({"width": 360, "height": 700})
        until(tab, "document.documentElement.scrollWidth <= 360")
        tab.click("#theme")


def test_with_the_token_the_page_acts(running, tab):
    folder, gate = running
    gate.allowed.release(1)
    control = Deeds()
    with Watch(folder, control=lambda _: control) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 1)
        tab.click("[data-action=pause]")
        tab.click("[data-action=stop]")  # once is not enough
        tab.click("[data-action=stop]")
        tab.fill("#remark-text", "the belt was changed")
        tab.press("#remark-text", "Enter")
        until(tab, "document.getElementById('remark-text').value === ''")
        assert control.done == ["pause", "stop", ("remark", "the belt was changed")]


def test_a_run_of_this_process_is_driven_from_the_page(running, tab):
    from gibo.runs.control import control_of

    folder, gate = running
    gate.allowed.release(1)
    with Watch(folder, control=control_of) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 1)
        tab.click("[data-action=pause]")
        gate.allowed.release(1)
        tab.wait_for_selector("#state >> text=Paused")
        drawn(tab, 2)
        assert "nothing is evaluated until it is continued" in tab.inner_text("#now-note")
        assert tab.inner_text("#sent") == ""
        tab.click("[data-action=continue]")
        tab.wait_for_selector("#state >> text=Running")
        tab.click("[data-fails='2']")
        gate.allowed.release(1)
        tab.wait_for_selector("#deeds >> text=query 2 marked as failed: marked as failed by hand")
        tab.click("[data-action=stop]")
        tab.click("[data-action=stop]")
        gate.allowed.release(100)
        tab.wait_for_selector("#state >> text=Ended")
        assert "stopped by a person" in tab.inner_text("#what")
        assert tab.locator("#actions button").count() == 0
    assert [each.failure for each in told(folder) if each.id == 2] == ["marked as failed by hand"]


def test_a_person_tells_a_value_with_the_keyboard(tmp_path, tab):
    from gibo.runs.control import control_of

    first = manual_run(tmp_path / "run")[0]
    with Watch(tmp_path / "run", control=control_of) as watch:
        tab.goto(watch.page_address)
        field = tab.get_by_label(f"value of query {first.id}", exact=True)
        field.fill("-1,5")
        field.press("Enter")
        drawn(tab, 1)
        until(tab, f"document.activeElement.dataset.id === '{first.id + 1}'")  # the next one can be typed
    (each,) = told(tmp_path / "run")
    assert (each.query.id, each.value) == (first.id, -1.5)


def test_who_evaluates_by_hand_sees_what_to_set(tmp_path, tab):
    """All parameters, as they were asked for; on a telephone, too, and with names that are long or hostile."""
    from gibo.runs.control import control_of

    names = [*(f"p{i}" for i in range(11)), HOSTILE, "a" * 150]
    manual.create(tmp_path / "run", manual.Description(names, [1 / 3] * 13, [1.0] * 13, [-5.0] * 13, [5.0] * 13))
    manual.ask(tmp_path / "run")
    with Watch(tmp_path / "run", control=control_of) as watch:
        tab.set_viewport_size({"width": 360, "height": 700})
        tab.goto(watch.page_address)
        row = tab.locator("#pending tbody tr").first
        row.locator("input").wait_for()
        shown = [each.inner_text().replace("\xa0", " ") for each in row.locator(".set:visible").all()]
        assert shown == [f"{name} 0.33333333" for name in names]
        tab.click("details:not(#model) summary")
        until(tab, "document.documentElement.scrollWidth <= 360")


def test_the_keyboard_stays_where_it_is_when_the_page_changes(running, tab):
    from gibo.runs.control import control_of

    folder, gate = running
    gate.allowed.release(1)
    focus = "(document.activeElement.dataset.action ?? document.activeElement.id)"
    with Watch(folder, control=control_of) as watch:
        tab.goto(watch.page_address)
        drawn(tab, 1)
        tab.focus("[data-action=pause]")
        tab.keyboard.press("Enter")
        gate.allowed.release(1)
        tab.wait_for_selector("#state >> text=Paused")
        until(tab, f"{focus} === 'continue'")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#state >> text=Running")
        until(tab, f"{focus} === 'pause'")
        tab.focus("[data-fails='2']")
        gate.allowed.release(1)
        drawn(tab, 3)
        until(tab, f"{focus} === 'pending'")  # on no other query, which nobody meant


def test_what_the_journal_has_sooner_than_the_page_its_answer_is_done(tmp_path, tab):
    from gibo.runs.control import FolderControl

    class Slow(FolderControl):
        def remark(self, text):
            super().remark(text)
            tab.heard.wait(10)

    manual_run(tmp_path / "run")
    tab.heard = threading.Event()
    with Watch(tmp_path / "run", control=Slow) as watch:
        tab.goto(watch.page_address)
        tab.fill("#remark-text", "oil at 60 degrees")
        tab.press("#remark-text", "Enter")
        tab.wait_for_selector("#deeds >> text=oil at 60 degrees")
        tab.heard.set()
        until(tab, "document.getElementById('remark-text').value === ''")
        tab.wait_for_timeout(300)
        assert tab.inner_text("#sent") == ""


def test_evaluations_are_counted_in_whole_numbers(tmp_path, tab):
    first = manual_run(tmp_path / "run")[0]
    with Watch(tmp_path / "run") as watch:
        tab.goto(watch.page_address)
        ticks = "charts[0]?.plot?.axes[0]._splits?.every((tick) => tick >= 0 && Number.isInteger(tick))"
        until(tab, ticks)
        manual.tell(tmp_path / "run", first.id, 1.0)
        drawn(tab, 1)
        until(tab, ticks)


@pytest.mark.parametrize("theme", [":root {", ':root[data-theme="dark"] {'])
def test_colours_stand_out(theme):
    """By WCAG 2: text by 4.5 to 1, what is drawn by 3 to 1."""
    block = files("gibo.web").joinpath("page/page.css").read_text(encoding="utf-8").split(theme)[1].split("}")[0]
    colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))

    def light(name):
        parts = np.array([int(colors[name][i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return 0.05 + float(linear @ [0.2126, 0.7152, 0.0722])

    def contrast(a, b):
        return max(light(a) / light(b), light(b) / light(a))

    on_cards = ("text", "muted", "iterate", "good", "warn", "bad")
    texts = [*((name, "card") for name in on_cards), ("text", "back"), ("muted", "back")]
    texts += [("warn", "warn-back"), ("bad", "bad-back")]
    assert [pair for pair in texts if contrast(*pair) < 4.5] == []
    marks = ("iterate", "query", "failure", "belief", "second", "focus")
    assert [name for name in marks if contrast(name, "card") < 3.0] == []


def test_without_the_token_there_is_nothing_to_press(running, tab):
    folder, gate = running
    gate.allowed.release(1)
    with Watch(folder, control=lambda _: Deeds()) as watch:
        tab.goto(watch.address)
        drawn(tab, 1)
        assert tab.locator("#actions button, .tell").count() == 0
        assert tab.is_hidden("#remark")


def test_parameters_are_copied_in_forms_that_read_back(tmp_path, tab):
    queries = manual_run(tmp_path / "run")
    manual.tell(tmp_path / "run", queries[0].id, 1.0)
    with Watch(tmp_path / "run") as watch:
        tab.goto(watch.page_address)
        drawn(tab, 1)
        forms = (
            "Object.fromEntries(Object.entries(FORMS).map(([name, form]) => [name, form([['gain', 1e-7], ['on', 2]])]))"
        )
        found = tab.evaluate(forms)
    assert json.loads(found["JSON"]) == {"gain": 1e-7, "on": 2.0}
    assert found["YAML"] == 'gain: 1.0e-7\n"on": 2.0\n'  # YAML 1.1 takes 1e-7 for a text, and on for true
    import ast

    assert ast.literal_eval(found["Python"]) == {"gain": 1e-7, "on": 2.0}


@pytest.mark.parametrize(
    ("best", "where"), [("start", "at the start, which still is"), ("far", "at the recommended point")]
)
def test_a_start_that_is_recommended_is_called_so(tmp_path, tab, best, where):
    rng = np.random.default_rng(0)

    def objective(x):
        return rng.standard_normal() if best == "start" else float(x.sum())

    result = gibo.maximize(objective, np.zeros(3), budget=20, scale=0.3, seed=0, journal=tmp_path / "run")
    assert np.array_equal(result.x, np.zeros(3)) == (best == "start")
    with Watch(tmp_path / "run") as watch:
        tab.goto(watch.page_address)
        drawn(tab, 20)
        assert where in tab.inner_text("#tiles")


def test_a_folder_of_trials(tmp_path, tab):
    import gibo

    for seed in range(3):
        folder = tmp_path / "all" / f"trial-{seed}"
        gibo.maximize(lambda x: -float((x**2).sum()), [1.0, 2.0], budget=20, seed=seed, journal=folder)
    with Watch(tmp_path / "all") as watch:
        tab.goto(watch.page_address)
        tab.wait_for_selector("#chart-trials canvas")
        assert tab.locator("#trial-table tbody tr").count() == 3
        assert "of 3 runs" in tab.inner_text("#trial-tiles")
        tab.click("text=trial-1")
        drawn(tab, 20)
        tab.click("#up")
        tab.wait_for_selector("#chart-trials canvas")


def test_a_report_is_a_page_of_its_own(finished, tmp_path, tab):
    path = tmp_path / "report.html"
    path.write_text(report(finished), encoding="utf-8")
    tab.goto(path.as_uri())
    drawn(tab, 60)
    assert tab.requests == [path.as_uri()]
    assert tab.inner_text("#state") == "Ended"
    assert tab.title() != "owned"
