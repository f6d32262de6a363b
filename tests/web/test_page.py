"""The page in a real browser: what it shows, that it follows a run, and what it may not do."""

import json
import re

import pytest
from watching import HOSTILE, PARAMETERS, Deeds, until

import gibo
from gibo.runs import manual
from gibo.runs.control import control_of
from gibo.runs.journal import Journal
from gibo.runs.table import read_values
from gibo.web.snapshot import snapshot
from gibo.web.watch import Watch, report

NAMES = list(PARAMETERS)


def drawn(tab, count, chart="values"):
    """Wait until the chart has drawn so many points."""
    tab.wait_for_selector(f'#chart-{chart}[data-drawn="{count}"]')


def told(folder):
    with Journal.read(folder) as journal:
        return [e for e, _ in journal.evaluations()]


def numbers(text):
    return [float(each) for each in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text.replace("\u2212", "-"))]


def test_a_running_run_is_followed(running, tab):
    folder, gate = running
    gate.allowed.release(2)
    with Watch(folder) as watch:
        tab.goto(watch.address_with_token)
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
        assert tab.evaluate("run.beliefs.value.length") == tab.evaluate("run.believed") > 0


def test_what_a_person_reads_is_in_their_units(finished, tab):
    result = manual.status(finished).result
    with Watch(finished) as watch:
        tab.goto(watch.address_with_token)
        drawn(tab, 60)
        assert tab.inner_text("#state") == "Ended"
        assert tab.inner_text("#verdict") == result.advice[0].text
        assert "Set the recommended parameters" in tab.inner_text("#next")
        assert f"{len(result.failures)} failed" in tab.inner_text("#tiles")
        rows = [row.locator("th, td").all_inner_texts() for row in tab.locator("#best tbody tr").all()]
        assert [row[0] for row in rows] == NAMES
        assert [numbers(row[1])[0] for row in rows] == pytest.approx([1.0, 6.0, 0.0, 1.5], abs=1.0)
        assert [numbers(row[2])[0] for row in rows] == pytest.approx(list(result.parameters.values()), rel=1e-4)
        tab.click("[data-form=JSON]")
        assert json.loads(tab.evaluate("navigator.clipboard.readText()")) == result.parameters
        tab.click("#columns")
        tab.click("#table [data-column=query]")
        tab.click("#table [data-column=query]")
        last = tab.locator("#table tbody tr").first.locator("td").all_inner_texts()
        (first,) = (e for e in told(finished) if e.id == 0)
        values = list(PARAMETERS.to_values(first.query.x).values())
        assert [numbers(text)[0] for text in last[-4:]] == pytest.approx(values, rel=1e-3)
        tab.click("#model summary")
        assert re.search(r"kp\s+\+\d", tab.inner_text("#gradient"))  # one scale of a log parameter is a share
        assert "ln " not in tab.inner_text("body")
        with tab.expect_download() as saved:
            tab.click("#csv")
    expected = [(PARAMETERS.to_values(e.query.x), e.value) for e in told(finished) if e.value is not None]
    assert read_values(saved.value.path(), NAMES) == expected


def test_views_of_the_model_paths_and_what_was_measured_besides(finished, tab):
    with Watch(finished) as watch:
        tab.goto(watch.address_with_token)
        drawn(tab, 60, "path")
        assert set(tab.locator("#importance .name").all_inner_texts()) == set(NAMES)
        assert tab.locator("#importance .name").last.inner_text() == "damping"
        assert tab.locator("#slices .slice svg .mark-belief").count() == 4
        for names, count in ((("kp", "angle"), 15 * 15), (("delay", "kp"), 12 * 15)):
            tab.select_option("#two-x", label=names[0])
            tab.select_option("#two-y", label=names[1])
            assert tab.locator("#contour rect").count() == count
        assert tab.is_visible("#parallel")
        tab.select_option("#path-of", label="measured: overshoot")
        tab.wait_for_selector('#chart-path[data-shows="overshoot"]')
        values = [e for e in told(finished) if e.value is not None]
        shown = tab.evaluate("pathChart.plot.data[1].filter((y) => y !== null)")
        assert shown == [e.outcome.info["overshoot"] for e in values]


def test_a_hostile_message_stays_text_in_dark_and_narrow(finished, tab):
    """Without the token there is nothing to press."""
    with Watch(finished, control=lambda _: Deeds()) as watch:
        tab.goto(watch.address)
        drawn(tab, 60)
        assert tab.locator("#actions button, .tell").count() == 0
        assert tab.is_hidden("#remark")
        tab.fill("#search", "failed")
        until(tab, "document.querySelectorAll('#table tbody tr').length < 50")
        texts = tab.locator("#table .failed").all_inner_texts()
        assert texts
        assert all(HOSTILE in text for text in texts)
        assert tab.locator("#table img, #advice img, #tip img").count() == 0
        assert tab.title() != "owned"
        light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        for _ in range(2):
            tab.click("#theme")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != light
        tab.set_viewport_size({"width": 360, "height": 700})
        until(tab, "document.documentElement.scrollWidth <= 360")
        tab.click("#theme")


def test_a_run_of_this_process_is_driven_from_the_page(running, tab):
    """The keyboard stays where it is when the page changes."""
    folder, gate = running
    gate.allowed.release(1)
    focus = "(document.activeElement.dataset.action ?? document.activeElement.id)"
    with Watch(folder, control=control_of) as watch:
        tab.goto(watch.address_with_token)
        drawn(tab, 1)
        tab.focus("[data-action=pause]")
        tab.keyboard.press("Enter")
        gate.allowed.release(1)
        tab.wait_for_selector("#state >> text=Paused")
        drawn(tab, 2)
        until(tab, f"{focus} === 'continue'")
        assert "until the run is continued" in tab.inner_text("#now-note")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#state >> text=Running")
        until(tab, f"{focus} === 'pause'")
        tab.fill("#remark-text", "the belt was changed")
        tab.press("#remark-text", "Enter")
        tab.wait_for_selector("#deeds >> text=the belt was changed")
        with tab.expect_response("**/api/control*"):  # otherwise the value could come first
            tab.click("[data-fails='2']")
        gate.allowed.release(1)
        tab.wait_for_selector("#deeds >> text=query 2 marked as failed: marked as failed by hand")
        until(tab, f"{focus} !== 'stop'")
        tab.click("[data-action=stop]")
        tab.click("[data-action=stop]")  # once is not enough
        gate.allowed.release(100)
        tab.wait_for_selector("#state >> text=Ended")
        assert "stopped by a person" in tab.inner_text("#what")
        assert tab.locator("#actions button").count() == 0
    assert [each.failure for each in told(folder) if each.id == 2] == ["marked as failed by hand"]


def limited_run(folder, count=12):
    """A run by hand with two limits, of which so many values are told."""
    limits = {"torque": {"upper": 3.0}, HOSTILE: {"lower": -5.0}}
    names, one = ["gain", "damping"], [1.0, 1.0]
    manual.create(folder, manual.Description(names, [0.0, 0.0], [0.3, 0.3], [-5.0, -5.0], [5.0, 5.0], limits=limits))
    for _ in range(count):
        query = manual.ask(folder).queries[0]
        measured = {"torque": 1.0 + query.x.sum(), HOSTILE: 0.1 * query.x[0]}
        manual.tell(folder, query.id, -float(((query.x - one) ** 2).sum()), measured=measured)
    return manual.ask(folder).queries


def test_limits_are_shown_and_what_they_limit_is_told(tmp_path, tab):
    folder = tmp_path / "run"
    first = limited_run(folder)[0]
    with Watch(folder, control=control_of) as watch:
        tab.set_viewport_size({"width": 390, "height": 844})  # a telephone
        tab.goto(watch.address_with_token)
        tab.wait_for_selector("#limits li")
        torque, other = tab.locator("#limits li").all_inner_texts()
        assert torque.startswith("torque at most 3: holds with probability ")
        p = manual.status(folder).result.limits["torque"]
        shown = torque.rpartition("probability ")[2].replace("\xa0", " ")
        assert shown in (("> 99 %", "100 %") if p > 0.9949 else (f"{round(100 * p)} %",))
        assert other.startswith(f"{HOSTILE} at least \u22125: holds with")
        value, load = (tab.get_by_label(f"{name} of query {first.id}", exact=True) for name in ("value", "torque"))
        value.fill("1.5")
        value.press("Enter")  # the measured quantities are missing
        load.fill("2,25")
        tab.get_by_label(f"{HOSTILE} of query {first.id}", exact=True).fill("0")
        with tab.expect_response("**/api/control*") as answer:
            value.press("Enter")
        assert answer.value.json() == {"ok": True, "recorded": True}
        drawn(tab, 13)
        until(tab, f"document.activeElement.dataset.id === '{first.id + 1}'")  # the next one can be typed
    e = told(folder)[-1]
    assert (e.id, e.value, e.measured) == (first.id, 1.5, {"torque": 2.25, HOSTILE: 0.0})


def test_another_start_and_an_abort_from_the_page(tmp_path, tab):
    folder = tmp_path / "run"
    limited_run(folder, 20)
    best = snapshot(folder)["belief"]["x"]  # as the page shows it
    assert best != [0.0, 0.0]
    with Watch(folder, control=control_of) as watch:
        tab.goto(watch.address_with_token)
        button = tab.locator("#set-start button")
        button.click()
        button.click()  # once is not enough
        tab.wait_for_selector("#deeds >> text=another start was set")
        until(tab, "document.querySelectorAll('#pending tr').length === 0")  # what was pending is withdrawn
        assert manual.ask(folder).queries[0].x.tolist() == best
        tab.wait_for_selector("#pending tbody tr")
        shown = tab.locator("#best tbody tr td:nth-child(2)").all_inner_texts()
        assert [numbers(text)[0] for text in shown] == pytest.approx(best, rel=1e-3)
        tab.click("[data-action=abort]")
        tab.click("[data-action=abort]")
        tab.wait_for_selector("#deeds >> text=aborted")
        until(tab, "document.querySelector('.next').textContent.startsWith('Next: Set gain = ')")
        assert tab.locator("#actions button").count() == 0
    assert list(manual.status(folder).aborted.values()) == best


def test_runs_side_by_side(finished, tmp_path, tab):
    for seed in range(3):
        folder = tmp_path / "all" / f"trial-{seed}"
        gibo.minimize(lambda a, b: a**2 + b**2, parameters=AB, budget=20, seed=seed, journal=folder)
    gibo.run(gibo.RandomSearch([1.0]), lambda x: -float(x @ x), budget=9, journal=tmp_path / "all" / "other")
    with Watch(tmp_path / "all") as watch:
        tab.goto(watch.address_with_token)
        tab.wait_for_selector("#chart-overlay canvas")
        rows = {
            row[1]: row
            for row in (r.locator("td").all_inner_texts() for r in tab.locator("#trial-table tr").all())
            if row
        }
        assert set(rows) == {"trial-0", "trial-1", "trial-2", "other"}
        assert "9" in rows["other"][4]
        assert "20 / 20" in rows["trial-1"][4]
        assert tab.locator("#trial-table .spark").count() == 4
        for name in ("trial-0", "trial-1", "trial-2", "other"):
            tab.set_checked(f"[aria-label='show {name} with the others']", name in ("trial-0", "trial-2"))
        tab.wait_for_selector("#overlay-of option >> text=parameter a", state="attached")
        tab.select_option("#overlay-of", label="parameter a")
        with Journal.read(tmp_path / "all" / "trial-2") as journal:
            a = [AB.to_values(e.query.x)["a"] for e, _ in journal.evaluations() if e.kind == "iterate"]
        until(tab, "overlay.plot.data.length === 3")
        assert tab.evaluate("overlay.plot.data[2].filter((y) => y !== null && y !== undefined)") == a
        assert "of 3 runs" in tab.inner_text("#trial-tiles")
        tab.click("#trial-table >> text=trial-1")
        drawn(tab, 20)
        tab.click("#up")
        tab.wait_for_selector("#chart-trials canvas")
        until(tab, "[...chosen].every((name) => loaded.get(name))")  # nothing is being read any more


AB = gibo.parameters.Parameters(a=gibo.parameters.log(0.1, 10), b=gibo.parameters.linear(-1, 1, start=0.5))


def test_a_report_is_a_page_of_its_own(finished, tmp_path, tab):
    path = tmp_path / "report.html"
    path.write_text(report(finished), encoding="utf-8")
    tab.goto(path.as_uri())
    drawn(tab, 60)
    assert tab.requests == [path.as_uri()]
    assert tab.inner_text("#state") == "Ended"
    assert tab.title() != "owned"
    assert "Leon Sorokin" in path.read_text()  # the chart library's licence goes with it
