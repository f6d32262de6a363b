"""Figures in README.md, docs/ and results/README.md that come from data are those of the data that are kept."""

import csv
import math
import re
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from gibo.studies.leaderboard.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]


@cache
def rows(name):
    with (ROOT / "results" / name).open() as file:
        return list(csv.DictReader(file))


@cache
def text(name):
    """With any white space as one space."""
    return " ".join((ROOT / name).read_text().split())


def regret(study, method, d, spent):
    """Mean over the functions."""
    found = [r for r in rows(f"{study}/marks.csv") if (r["method"], r["d"], r["evaluation"]) == (method, d, spent)]
    return np.mean([float(r["regret"]) for r in found])


def regrets(study, method, d):
    """After 100, 200 and 300 values."""
    return [regret(study, method, d, spent) for spent in ("100", "200", "300")]


def returns(study, method, episodes, environment=None):
    """Mean and standard deviation over the trials, of the last look by then."""
    last = {}
    for row in rows(f"{study}/returns.csv"):
        wanted = row["method"] == method and environment in (None, row["environment"])
        if wanted and int(row["episodes"]) <= int(episodes):
            last[row["trial"]] = float(row["return"])
    return np.mean(list(last.values())), np.std(list(last.values()))


def cost(method, steps):
    (row,) = [r for r in rows("lqr/curves.csv") if (r["method"], r["steps"]) == (method, steps)]
    return float(row["median"])


def differences(these, those, d, spent):
    """Of the regrets of random and chosen queries, per function."""
    value = {
        (r["method"], r["function"]): float(r["regret"])
        for r in rows("ablation-sampling/marks.csv")
        if (r["d"], r["evaluation"]) == (d, spent)
    }
    names = [name for method, name in value if method == these]
    each = np.array([value[those, name] - value[these, name] for name in names])
    return each.mean(), each.std(ddof=1) / np.sqrt(len(each))


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_no_line_of_the_site_is_a_comment(path):
    """What begins with a percent sign is left out of the built page."""
    assert not [line for line in path.read_text().splitlines() if line.startswith("%")]


# -- tables -----------------------------------------------------------------------------------------------------------


def tables(name):
    """The Markdown tables of a file: a header and rows, of stripped cells."""
    found, table = [], []
    for line in [*(ROOT / name).read_text().splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            found.append((table[0], table[2:]))
            table = []
    return found


@pytest.mark.parametrize("name", ["README.md", "docs/results.md"])
def test_the_table_of_the_synthetic_study(name):
    ((header, body),) = [each for each in tables(name) if each[0][:2] == ["d", "GIBO"]]
    for d, *cells in body:
        expected = [regret("within-model", method, d, "300") for method in header[1:]]
        assert [float(cell.strip("*")) for cell in cells] == pytest.approx(expected, abs=0.00051)
        best = int(np.argmin(expected))
        assert [i for i, cell in enumerate(cells) if cell.startswith("**")] == [best]


STUDY_OF = {"CartPole-v1": "cartpole", "Swimmer-v5": "swimmer", "Hopper-v5": "hopper", "HalfCheetah-v5": "cheetah"}


@pytest.mark.parametrize("name", ["README.md", "docs/results.md"])
def test_the_table_of_policy_search(name):
    ((header, body),) = [each for each in tables(name) if each[0][:2] == ["", "episodes"]]
    study = ""
    for task, episodes, *cells in body:
        study = STUDY_OF[task.partition(",")[0]] if task else study
        for method, cell in zip(header[2:], cells, strict=True):
            mean, sd = returns(study, method, episodes)
            assert [float(number) for number in cell.split(" ± ")] == pytest.approx([mean, sd], abs=0.51)


def test_the_table_of_gradient_steps():
    found = [each for each in tables("docs/results.md") if each[0][:2] == ["d", "scale"]]
    assert found == tables("results/defaults.md")


@pytest.mark.parametrize("name", ["README.md", "docs/leaderboard.md"])
def test_the_ranks_of_the_leaderboard(name):
    (rows,) = [rows for header, rows in tables(name) if header[1:] == ["20 trials", "4 trials"]]
    for column, folder in ((1, "leaderboard-judge"), (2, "leaderboard-models")):
        with (ROOT / "results" / folder / "ranks.csv").open() as file:
            ranks = {r["method"]: r for r in csv.DictReader(file) if r["half"] == "judge" and r["among"] == "all"}
        assert rows[0][0] == "GIBO"
        for row in rows:
            if row[column]:
                found = [float(number) for number in re.findall(r"[0-9.]+", row[column])]
                expected = [float(ranks[row[0]][each]) for each in ("mean_rank", "low", "high")]
                np.testing.assert_allclose(found, expected, atol=0.0051)


def test_what_is_said_of_the_leaderboard():
    needed = {
        r["task"]: [float(r[m] or "inf") for m in ("GIBO", "CMA-ES")] for r in rows("leaderboard-judge/needed.csv")
    }
    half = [task for task, (gibo, cma) in needed.items() if gibo <= 0.5 * cma]
    for name in ("README.md", "docs/leaderboard.md"):
        assert f"On {len(half)} of {'the ' if 'docs' in name else ''}{len(needed)} tasks" in text(name)
    ever, said = "docs/leaderboard.md", []
    for task, (gibo, cma) in needed.items():
        if task not in half:
            name = re.split("[ -]v1| s| e| r", task)[0]
            said.append(f"{name} {gibo:.0f} of {cma:.0f}" if np.isfinite(gibo) else f"on {name} it does not")
    assert f"({', '.join(said)})" in text(ever)
    last = {}
    for row in rows("leaderboard-judge/curves.csv"):
        last.setdefault(row["task"], {})[row["method"]] = float(row["mean"])  # in the order of the evaluations
    share = min(each["GIBO"] / max(each.values()) for each in last.values())
    assert f"at least {100 * share:.0f} % of the best method's improvement on every task" in text(ever)
    last = {
        task: {m: list(e.values())[-1] for m, e in each.items()} for task, each in ends("leaderboard-models").items()
    }
    share = min(each["GIBO"] / max(each.values()) for each in last.values())
    assert f"at least {100 * share:.0f} % of the best of all nine's in the four trials that these have" in text(ever)
    (mean,) = [float(r["mean"]) for r in rows("leaderboard-judge/times.csv") if r["method"] == "GIBO"]
    assert f"{1000 * mean:.0f} ms on average with the default" in text("README.md")


def test_what_is_said_of_wrong_scales_and_of_environments():
    (table,) = [body for header, body in tables("docs/leaderboard.md") if header == ["scale", "GIBO", "CMA-ES"]]
    found = rows("leaderboard-scales/last.csv")
    for name, *cells in table:
        for method, cell in zip(("GIBO", "CMA-ES"), cells, strict=True):
            one = [float(r["improvement"]) for r in found if r["method"] == method and name == f"× {r['scale']}"]
            assert cell == f"{100 * np.mean(one):.0f} % ({sum(each < -0.02 for each in one)})"
    solved = {(method, scale): 0 for method in ("GIBO", "CMA-ES") for scale in ("0.1", "1", "10")}
    for method, scale in solved:
        for task in {r["task"] for r in found}:
            one = [
                float(r["improvement"]) for r in found if (r["task"], r["method"], r["scale"]) == (task, method, scale)
            ]
            solved[method, scale] += bool(np.mean(one) >= TASKS[task].solved)
    counts = "GIBO has {}, {} and {} solved on average by these scales, CMA-ES {}, {} and {} ".format(*solved.values())
    assert counts in text("docs/leaderboard.md")
    data = rows("leaderboard-environments/values.csv")

    def gibo(task, evaluations):
        return [
            float(r["value"]) for r in data if (r["task"], r["evaluations"], r["method"]) == (task, evaluations, "GIBO")
        ]

    pole, page = gibo("CartPole-v1", "32"), text("docs/leaderboard.md")
    assert f"| CartPole-v1, after 32, {len(pole)} trials | {np.mean(pole):.0f} on average |" in page
    hopper, swimmer = "Hopper-v5 affine without bonus", "Swimmer-v5"
    shown = ((swimmer, "150"), (f"{swimmer} action noise 0.5", "150"), (hopper, "600"), (hopper, "1000"))
    for task, after in (*shown, ("Hopper-v5", "1000")):
        assert f" | {' '.join(f'{value:.0f}' for value in gibo(task, after))} |" in page
    cheetah = [f"{np.mean(gibo('HalfCheetah-v5', f'{n}00')):.0f}" for n in range(1, 6)]
    assert f" | {' / '.join(cheetah)} |" in page
    assert f"Judged, HalfCheetah-v5 has {cheetah[-1]} after 500" in page


def test_the_table_of_the_dear_tasks():
    found = rows("leaderboard-environments/values.csv")
    ((header, body),) = [each for each in tables("docs/leaderboard.md") if each[0][:2] == ["after", "start"]]
    assert len(body) > 4
    for name, _, *cells in body:
        task, after = name.split(", ")
        for method, cell in zip(header[2:], cells, strict=True):
            key = (task, method, after)
            values = [float(r["value"]) for r in found if (r["task"], r["method"], r["evaluations"]) == key]
            assert values
            assert cell == " ".join(f"{value:.0f}" for value in values).replace("-", "−")


def test_what_is_said_of_the_papers_functions():
    found = rows("leaderboard-environments/paper-functions.csv")
    pairs = {}
    for known in ("unknown", "known"):
        for task in ("gp8", "gp20", "gp36"):
            one = [r for r in found if (r["task"], r["hyperparameters"]) == (task, known)]
            means = [np.mean([float(r["regret"]) for r in one if r["evaluations"] == n]) for n in ("100", "300")]
            pairs[known, task[2:]] = f"{means[0]:.3f} / {means[1]:.3f}"
    page = text("docs/leaderboard.md")
    assert "; ".join(f"d = {d} {pairs['unknown', d]}" for d in ("8", "20", "36")) in page
    a, b, c = (pairs["known", d] for d in ("8", "20", "36"))
    assert f"it has {a}, {b} and {c}" in page


def ends(folder):
    """Tasks, and by method the mean share of the improvement after so many values."""
    found = {}
    for row in rows(f"{folder}/curves.csv"):
        shares = found.setdefault(row["task"], {}).setdefault(row["method"], {})
        shares[int(row["evaluations"])] = float(row["mean"])
    return found


def assert_table_of_rivals(folder, body):
    """Ranks in their order, shares in the end and times."""
    ranks = {r["method"]: r for r in rows(f"{folder}/ranks.csv") if (r["half"], r["among"]) == ("judge", "all")}
    times = {r["method"]: 1000 * float(r["mean"]) for r in rows(f"{folder}/times.csv")}
    last = {method: np.mean([list(each[method].values())[-1] for each in ends(folder).values()]) for method in ranks}
    assert [row[0] for row in body] == list(ranks)
    for method, rank, share, ms in body:
        expected = [float(ranks[method][key]) for key in ("mean_rank", "low", "high")]
        assert [float(number) for number in re.findall(r"[0-9.]+", rank)] == pytest.approx(expected, abs=0.0051)
        assert share == f"{100 * last[method]:.0f} %"
        assert float(ms) == pytest.approx(times[method], abs=0.051)


def test_what_is_said_of_other_packages():
    page, name = text("docs/leaderboard.md"), "leaderboard-extras"
    (body,) = [
        body for header, body in tables("docs/leaderboard.md") if header[1:] == ["mean rank", "share", "ms per value"]
    ]
    assert_table_of_rivals(name, body)
    share = {task: {m: list(each.values())[-1] for m, each in methods.items()} for task, methods in ends(name).items()}
    ahead = {(task, m): v - each["GIBO"] for task, each in share.items() for m, v in each.items() if v > each["GIBO"]}
    cart = {("MountainCarContinuous-v0", method) for method in ("Optuna TPE", "nevergrad")}
    acrobot = {("Acrobot-v1", method) for method in ("CMA-ES", "nevergrad", "COBYQA", "Optuna TPE")}
    assert ahead.keys() == cart | acrobot | {("levy10", "CMA-ES")}
    assert f"by at most {100 * max(ahead[each] for each in cart):.1f} % behind Optuna TPE and nevergrad" in page
    assert f"by at most {100 * max(ahead[each] for each in acrobot):.1f} % behind the four others on Acrobot" in page
    levy = [100 * share["levy10"][method] for method in ("GIBO", "CMA-ES")]
    assert f"behind CMA-ES on levy10 ({levy[0]:.0f} % against {levy[1]:.0f} %)" in page
    at = {
        task: {m: 100 * each.get(50, math.nan) for m, each in methods.items()} for task, methods in ends(name).items()
    }
    bbob = at["bbob-116 ellipsoid"]
    assert f"behind Optuna TPE on bbob-116 ({bbob['Optuna TPE']:.0f} % against {bbob['GIBO']:.0f} %)" in page
    cma = {task for task, each in at.items() if each["CMA-ES"] > each["GIBO"] + 1.0}
    assert cma == {"Acrobot-v1", "bbob-107 sphere", "bbob-110 rosenbrock", "pid"}
    noisy = [100 * share[task]["COBYQA"] for task in ("bbob-101 sphere", "plateau6")]
    assert (
        "at {:.0f} % on bbob-101, whose noise fades towards the optimum, and at {:.0f} % on plateau6".format(*noisy)
        in page
    )


def test_what_is_said_of_dear_packages():
    """Three trials each: what is shown is every mean in the end."""
    name = "leaderboard-dear"
    ((header, body),) = [each for each in tables("docs/leaderboard.md") if each[0][-2:] == ["Optuna GP", "BoTorch"]]
    *shown, ranked = body
    found = ends(name)
    expected = [
        [
            f"{task}, {max(each['GIBO'])}",
            *(f"{100 * list(each[m].values())[-1]:.0f} %".replace("-", "−") for m in header[1:]),
        ]
        for task, each in found.items()
    ]
    assert shown == expected
    ranks = {r["method"]: r for r in rows(f"{name}/ranks.csv") if (r["half"], r["among"]) == ("judge", "all")}
    for method, cell in zip(header[1:], ranked[1:], strict=True):
        each = [float(ranks[method][key]) for key in ("mean_rank", "low", "high")]
        assert [float(number) for number in re.findall(r"[0-9.]+", cell)] == pytest.approx(each, abs=0.0051)
    page = text("docs/leaderboard.md")
    optuna, gibo = (f"{100 * found['pid'][method][20]:.0f} %" for method in ("Optuna GP", "GIBO"))
    assert f"after 20 values Optuna's Gaussian process has {optuna} and GIBO {gibo}." in page
    assert all(list(found["pid"][m].values())[-1] > list(found["pid"]["GIBO"].values())[-1] for m in header[2:])
    trials = list(ends("leaderboard-extras")["pid"]["GIBO"].values())
    every = list(ends("leaderboard-judge")["pid"]["GIBO"].values())
    shares = f"{100 * trials[-1]:.0f} % there, over all twenty {100 * every[-1]:.0f} %"
    assert f"(over the four trials above it has {shares})" in page


def test_what_is_said_of_local_entropy_search():
    name, page, method = "leaderboard-les", text("docs/leaderboard.md"), "Local entropy search"
    ranks = {r["method"]: r for r in rows(f"{name}/ranks.csv") if (r["half"], r["among"]) == ("judge", "all")}
    each = [
        f"{m} {float(r['mean_rank']):.2f} ({float(r['low']):.2f} to {float(r['high']):.2f})" for m, r in ranks.items()
    ]
    assert f"GIBO, MinUCB and CMA-ES: {', '.join(each)}." in page
    share = {task: [list(e[m].values())[-1] for m in (method, "GIBO")] for task, e in ends(name).items()}
    assert sum(abs(gibo - other) <= 0.03 for other, gibo in share.values()) == 8
    for task, shown in (
        ("bbob-107 sphere", "bbob-107 ({} % of the improvement against {} %)"),
        ("bbob-110 rosenbrock", "bbob-110 ({} % against {} %)"),
        ("bbob-116 ellipsoid", "bbob-116 ({} % against {} %)"),
        ("pid", "pid ({} % against {} %)"),
    ):
        assert shown.format(*(f"{100 * v:.0f}".replace("-", "−") for v in share[task])) in page
    (seconds,) = [float(r["mean"]) for r in rows(f"{name}/times.csv") if r["method"] == method]
    assert f"takes {seconds:.2f} s per value" in page


def test_what_is_said_of_the_regulator():
    found = {}
    for row in rows("leaderboard-environments/lqr.csv"):
        found.setdefault((row["scale"], row["method"]), []).append(float(row["relative_cost"]))
    assert {len(each) for each in found.values()} == {20}
    (a, b), (c, d), (e, f) = ([f"{median(found[k, m]):.2f}" for m in ("GIBO", "CMA-ES")] for k in ("1", "0.333", "0.1"))
    page = text("docs/leaderboard.md")
    assert f"a median relative cost of {a} after 60 episodes with the scale of 0.1" in page
    assert f"(CMA-ES {b}), {c} with a third of it (CMA-ES {d}) and {e} with a tenth (CMA-ES {f}; 20 trials" in page


def test_what_is_said_of_another_seed():
    name, page = "leaderboard-judge-8", text("docs/leaderboard.md")
    ranks = [r for r in rows(f"{name}/ranks.csv") if r["among"] == "all"]
    gibo, cma = (f"{float(r['mean_rank']):.2f} ({float(r['low']):.2f} to {float(r['high']):.2f})" for r in ranks[:2])
    assert f"mean rank {gibo}, CMA-ES {cma}." in page
    needed = [[float(r[m] or "inf") for m in ("GIBO", "CMA-ES")] for r in rows(f"{name}/needed.csv")]
    half = sum(gibo <= 0.5 * cma for gibo, cma in needed)
    assert f"On {half} of the {len(needed)} tasks GIBO needs at most half of CMA-ES's evaluations" in page
    assert f"with another seed on {half}," in text("README.md")
    last = [{m: list(c.values())[-1] for m, c in e.items()} for e in ends(name).values()]
    share = min(e["GIBO"] / max(e.values()) for e in last)
    assert f"at least {100 * share:.0f} % of the best method's improvement everywhere" in page


def test_what_is_said_of_the_rest_of_noisy_bbob():
    name, page = "leaderboard-bbob", text("docs/leaderboard.md")
    ranks = [r for r in rows(f"{name}/ranks.csv") if r["among"] == "all"]
    each = [
        f"{r['method']} {float(r['mean_rank']):.2f} ({float(r['low']):.2f} to {float(r['high']):.2f})" for r in ranks
    ]
    assert f"Mean rank: {', '.join(each)}." in page
    gibo, cma = (float(ranks[i]["mean_rank"]) for i in (0, 1))
    assert f"26 functions, it is first, too ({gibo:.2f}; CMA-ES {cma:.2f})" in text("README.md")
    last = {task: {m: list(c.values())[-1] for m, c in e.items()} for task, e in ends(name).items()}
    assert f"GIBO is first on {sum(max(e, key=e.__getitem__) == 'GIBO' for e in last.values())} of them" in page
    needed = [[float(r[m] or "inf") for m in ("GIBO", "CMA-ES")] for r in rows(f"{name}/needed.csv")]
    above = [(gibo, cma) for gibo, cma in needed if cma > 0]
    half = sum(gibo <= 0.5 * cma for gibo, cma in above)
    assert f"at most half of its evaluations on {half} of {len(above)}." in page
    uniform = [last[task] for task in last if (int(task[5:8]) - 108) % 3 == 0 and task > "bbob-107"]
    assert len(uniform) == 8
    assert sum(max(e.values()) <= 0 for e in uniform) == 7
    assert not any(e["GIBO"] < e["CMA-ES"] for e in last.values())


def test_what_is_said_of_a_full_matrix():
    """Ends, and marks in between, of results/leaderboard-full."""
    name, found = "docs/leaderboard.md", {}
    for row in rows("leaderboard-full/curves.csv"):
        found[row["task"], row["method"], int(row["evaluations"])] = f"{100 * float(row['mean']):.0f} %"
    full, diagonal = "GIBO (full matrix)", "GIBO"
    ends = [found["rosenbrock8", method, 400] for method in (full, diagonal)]
    assert "rosenbrock8 ends at {} instead of {} of".format(*ends) in text(name)
    assert found["rotated-ellipsoid10", full, 300] == found["rotated-ellipsoid10", diagonal, 300] == "100 %"
    cliff = [found["cliff12", method, spent] for spent in (200, 100) for method in (full, diagonal)]
    assert "cliff12 loses, {} against {} in the end and {} against {} after 100".format(*cliff) in text(name)
    ranks = {r["method"]: r for r in rows("leaderboard-full/ranks.csv") if r["half"] == "choose"}
    each = [f"{float(ranks[method][key]):.2f}" for key in ("mean_rank", "low", "high") for method in (full, diagonal)]
    expected = "rank is {0} against {1} (95 % intervals {2} to {4}, {3} to {5})".format(*each)
    assert expected in text(name)


# -- sentences --------------------------------------------------------------------------------------------------------

R, D, N = "results/README.md", "docs/results.md", "README.md"


def three(values):
    return " / ".join(f"{value:.3f}" for value in values)


def spread(pair):
    return f"{pair[0]:.0f} ± {pair[1]:.0f}"


def error(pair, digits=3):
    return f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f}"


def claims():
    """Files, and sentences with their figures as the data have them."""

    def wm(method, d):
        return f"{regret('within-model', method, d, '100'):.3f}"

    behind = f"({wm('CMA-ES', '36')} against {wm('GIBO', '36')} at d = 36)"
    yield (N, D, R), behind
    yield (N, R), f"({wm('Vanilla BO', '20')} against {wm('GIBO', '20')} at d = 20)"
    out = {
        (method, d): regrets("out-of-model", method, d)
        for method in ("GIBO", "GIBO, our defaults")
        for d in ("20", "36")
    }
    early = [f"{out['GIBO, our defaults', d][0]:.3f} against {out['GIBO', d][0]:.3f} at d = {d}" for d in ("20", "36")]
    yield (D, R), early[0]
    yield (D, R), early[1]
    yield (R,), f"({out['GIBO', '20'][2]:.3f} at d = 20, {out['GIBO', '36'][2]:.3f} at d = 36 after 300 values)"
    for d in ("20", "36"):
        random, chosen = (regrets("ablation-sampling", f"our defaults, {name}", d) for name in ("random", "active"))
        yield (
            (R,),
            f"at d = {d} random queries have {three(random)}" if d == "20" else f"at d = {d} {three(random)} where",
        )
        yield (R,), f"have {three(chosen)}"
    for d in ("32", "16"):
        yield (R,), f"{error(differences('active', 'random', d, '200'))} (d = {d}"
    shares = [
        1 - regret("ablation-sampling", "active", d, "200") / regret("ablation-sampling", "random", d, "200")
        for d in ("12", "16", "20", "24", "28", "32", "36")
    ]
    yield (R,), f"in 12 and more dimensions by {100 * min(shares):.0f} to {100 * max(shares):.0f} %"
    for study, methods in (
        ("within-model", ("ARS (tuned)", "ARS", "GIBO")),
        ("out-of-model", ("ARS (tuned)", "CMA-ES (tuned)", "GIBO", "GIBO, our defaults")),
    ):
        for method in methods:
            yield (R,), three(regrets(study, method, "36"))
    stop = {(name, d): regrets("stopping", name, d) for name in ("M = d", "M = d/2") for d in ("8", "20", "36")}
    stop |= {
        (name, d): regrets("stopping", name, d) for name in ("least gain 0.1", "least share 0.05") for d in ("20", "36")
    }
    gains = [
        f"{stop['least gain 0.1', d][0]:.3f} instead of {stop['M = d', d][0]:.3f} at d = {d}" for d in ("20", "36")
    ]
    yield (R,), " and ".join(gains)
    for name in ("least share 0.05", "M = d/2"):
        yield (R,), f"{stop[name, '20'][0]:.3f} and {stop[name, '36'][0]:.3f}"
    yield (R,), f"({stop['least share 0.05', '36'][2]:.3f} against {stop['M = d', '36'][2]:.3f})"
    yield (R,), f"({stop['M = d/2', '8'][2]:.3f} against {stop['M = d', '8'][2]:.3f})"
    for method, published in (("GIBO (published)", True), ("GIBO (fixed mean)", False)):
        costs = [cost(method, steps) for steps in ("18000", "39000")]
        between = " after 18000 and " if published else " and "
        yield (R,), f"{costs[0]:.3f}{between}{costs[1]:.3f}"
    yield (R,), f"{cost('GIBO (published)', '12000'):.3f} and {cost('GIBO (fixed mean)', '12000'):.3f}"
    yield (N, D), f"{100 * cost('GIBO (fixed mean)', '39000'):.1f} % above the optimum"
    yield (N, D), f"{100 * cost('GIBO (published)', '39000'):.1f} %"
    yield (D,), f"{100 * cost('ARS', '39000'):.1f} %."
    yield (R,), f"{spread(returns('cartpole', 'GIBO (published)', '54'))} after 54 episodes"
    yield (R,), f"it is {spread(returns('cartpole', 'GIBO', '54'))} after 54"
    yield (R,), f"ARS, as published, ends at {spread(returns('cartpole', 'ARS', '100'))}"
    yield (R,), f"{spread(returns('swimmer', 'GIBO', '500'))} after 500 episodes"
    yield (R,), f"{spread(returns('swimmer', 'GIBO', '2000'))} after 2000"
    yield (R,), f"ends at {spread(returns('swimmer', 'ARS', '2000'))} (published: 309 ± 103"
    yield (R,), f"{spread(returns('hopper', 'GIBO', '2000'))}, median"
    last = {}
    for row in rows("hopper/returns.csv"):
        if row["method"] == "GIBO":
            last.setdefault(row["trial"], []).append(float(row["return"]))
    means = [np.mean(each[-5:]) for each in last.values()]
    yield (R,), f"mean of the last five looks is {min(means):.0f} to {max(means):.0f} in every trial"
    yield from of_gradients()
    yield from of_a_critic()
    off = "without gradient normalisation"
    yield (R,), f"CartPole's return is {spread(returns('ablation-gym', off, '100', 'CartPole-v1'))} after 100 episodes"
    yield (R,), f"Swimmer's {spread(returns('ablation-gym', off, '500', 'Swimmer-v5'))} after 500"
    yield (R,), f"side, {regret('out-of-model', 'CMA-ES', '36', '300'):.3f} after 300 values at d = 36"
    for method in ("without state normalisation", "without gradient normalisation", "GIBO"):
        each = [spread(returns("ablation-hopper", method, episodes)) for episodes in ("1000", "2000")]
        yield (R,), f"{each[0]} after 1000 episodes and {each[1]}" if "state" in method else " and ".join(each)


def of_gradients():
    """From `gibo reproduce gradients`: means and medians of the last look by then."""

    def at(problem, M, gradients, spent):
        last = {}
        for row in rows("gradients/gradients.csv"):
            if (row["problem"], row["M"], row["gradients"]) == (problem, M, gradients) and int(row["spent"]) <= spent:
                last[row["trial"]] = float(row["value"] or "inf")
        return list(last.values())

    few = {name: np.mean(at("synthetic", "5", name, 100)) for name in ("none", "noise 0.001", "noise 0.5")}
    both = f"from {few['none']:.3f} to {few['noise 0.001']:.3f}"
    yield (D, R, "docs/gradients.md"), both
    yield (R, "docs/gradients.md"), f"to {few['noise 0.5']:.3f}"
    exact = [np.mean(at("synthetic", "20", name, 300)) for name in ("none", "noise 0.001")]
    yield (R,), f"after 300 values from {exact[0]:.3f} to {exact[1]:.3f}"
    ends = {
        (M, name): np.median(at("lqr", M, name, 130)) for M in ("9", "3") for name in ("none", "noise 1", "noise 10")
    }
    yield ("docs/gradients.md",), f"a median of {100 * ends['3', 'noise 1']:.1f} % above"
    yield (
        ("docs/gradients.md",),
        f"{100 * ends['3', 'none']:.0f} % is left without them and {100 * ends['9', 'none']:.0f} %",
    )
    yield (R,), f"stays at {ends['9', 'none']:.3f} without, and ends at {ends['9', 'noise 1']:.3f} with noise"
    yield (R,), f"stays at {ends['3', 'none']:.2f} without gradients"


def of_a_critic():
    def at(task, gradients, episodes):
        wanted = (task, gradients, episodes)
        found = [
            float(r["return"])
            for r in rows("critic/returns.csv")
            if (r["task"], r["gradients"], r["episodes"]) == wanted
        ]
        return spread((np.mean(found), np.std(found, ddof=1) / np.sqrt(len(found)))).replace("-", "−")

    for arm in ("none", "critic", "likelihood ratio", "none, noise on the actions"):
        yield (R, "docs/gradients.md"), at("Swimmer-v5", arm, "120")
    yield (R,), f"{at('Pendulum-v1', 'none', '300')} without, {at('Pendulum-v1', 'critic', '300')} with the critic's"


def test_normalisation():
    """What results/README.md says of figure 8."""
    value = {
        (r["method"], int(r["d"]), r["evaluation"], r["function"]): float(r["regret"])
        for r in rows("ablation-normalisation/marks.csv")
    }
    assert len(value) == 4 * 9 * 40 * 3

    def each(method, d, spent):
        return np.array([value[method, d, spent, str(f)] for f in range(40)])

    def paired(method, d, spent):
        difference = each(method, d, spent) - each("paper", d, spent)
        return difference.mean(), difference.std(ddof=1) / np.sqrt(40)

    others, dimensions = ("published", "invariant"), range(4, 37, 4)
    late = [paired(method, d, "300") for method in others for d in dimensions]
    assert f"paired, at most {max(abs(m / e) for m, e in late):.1f} standard errors" in text(R)
    early = [paired(method, d, "100") for method in others for d in range(16, 37, 4)]
    assert all(m < -2.0 * e for m, e in early)
    gains = [-m for m, _ in early]
    assert f"ahead by {min(gains):.3f} to {max(gains):.3f} in 16 and more dimensions" in text(R)
    times = [each("off", d, "300").mean() / each("paper", d, "300").mean() for d in dimensions]
    assert f"is {min(times):.1f} to {max(times):.1f} times that of the paper's form" in text(R)
    ahead = [d for d in dimensions if each("off", d, "100").mean() < each("paper", d, "100").mean()]
    assert ahead == [28, 32, 36]


def test_regrets_over_the_dimensions():
    """What docs/when.md says of 12 to 36 parameters."""
    lines = []
    for method in ("GIBO", "CMA-ES", "Vanilla BO"):
        found = [regret("within-model", method, str(d), "300") for d in range(12, 37, 4)]
        lines.append(f"{min(found):.3f} to {max(found):.3f}")
    assert f"regret after 300 values is {lines[0]}, CMA-ES's {lines[1]}, a global method's {lines[2]}" in text(
        "docs/when.md"
    )


def test_times_are_the_same_everywhere():
    ((_, body),) = [each for each in tables(D) if each[0][:3] == ["d", "N_m", "gradients"]]
    without, given = (next(float(r[3].split()[0]) for r in body if r[0] == "36" and r[2] == g) for g in ("0", "5"))
    assert f"A query takes {without + 0.001:.1f} ms at 36 parameters" in text(N)
    assert f"a query took {given:.1f} ms instead of {without + 0.001:.1f}" in text("docs/gradients.md")


def test_sentences():
    all_claims = [(name, sentence) for names, sentence in claims() for name in names]
    assert len(all_claims) > 30
    assert [(name, sentence) for name, sentence in all_claims if sentence not in text(name)] == []


def test_who_is_ahead_after_100_values():
    """What README.md, docs/results.md and results/README.md say of the paper's settings."""

    def ahead(method):
        all_d = sorted({int(r["d"]) for r in rows("within-model/curves.csv")})
        return [
            d
            for d in all_d
            if regret("within-model", method, str(d), "100") < regret("within-model", "GIBO", str(d), "100")
        ]

    assert ahead("CMA-ES") == [20, 28, 32, 36]
    assert ahead("Vanilla BO") == [4, 12, 16, 20]
    for name in (N, D, R):
        assert re.search(r"CMA-ES is (ahead of it )?(ahead )?in 20 dimensions and in 28 and more", text(name)), name


def test_tuned_baselines_are_ahead_early_and_behind_in_the_end():
    for d in ("8", "12", "16", "20", "24", "28", "32", "36"):
        for method in ("ARS (tuned)", "CMA-ES (tuned)"):
            tuned, gibo, ours = (regrets("out-of-model", name, d) for name in (method, "GIBO", "GIBO, our defaults"))
            assert tuned[2] > gibo[2]
            assert all(a > b for a, b in zip(tuned, ours, strict=True))
    assert regret("out-of-model", "ARS (tuned)", "36", "100") < regret("out-of-model", "GIBO", "36", "100")
