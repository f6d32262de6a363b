"""Journals that are damaged at random, and journals with any content and right checksums."""

import json
import multiprocessing
from unittest import mock

import numpy as np
import test_bad_will
import test_damage
from run_helpers import columns_of, content, forked
from run_helpers import rows as rows_of

from gibo.runs.store import FILE, TABLES
from soak import SEED, Row, share_of

KINDS = [test_damage.overwritten, test_damage.cut_off, test_damage.zeroed, test_damage.swapped, test_damage.headers]


def damaged(tries, folder):
    sound, copy = folder / "sound", folder / "copy"
    copy.mkdir()
    test_damage.make_sound(sound)
    data, expected, rng = (sound / FILE).read_bytes(), content(sound), np.random.default_rng(SEED)
    refused, findings = 0, []
    for i in range(tries):
        try:
            refused += test_damage.read_damaged(KINDS[i % len(KINDS)](data, rng), copy, expected)
        except BaseException as error:
            findings.append(f"copy {i}: {type(error).__name__}: {error}")
    what = f"damaged journals ({refused:,} refused, the others read as written)"
    return Row(what, tries, tries - len(findings), 0, len(findings), tuple(findings))


def cases(victim):
    """Any content in any column, and in any place of the arguments and of the last memo."""
    for table in TABLES:
        count = len(rows_of(victim, table))
        for column, kind, *_ in (column.split() for column in TABLES[table].split(", ")):
            for row in range(count) if table == "facts" else [count - 1] if count else []:
                yield from ((table, column, row, value) for value in test_bad_will.HOSTILE[kind])
    facts = [row[0] for row in rows_of(victim, "facts")]
    places = [("facts", "content", facts.index("arguments"))]
    places += [("batches", "thought", len(rows_of(victim, "batches")) - 1)]
    for table, column, row in places:
        data = json.loads(rows_of(victim, table)[row][columns_of(table).index(column)])
        for path in test_bad_will.paths(data):
            for value in test_bad_will.NESTED:
                yield table, column, row, json.dumps(test_bad_will.with_part(data, path, value))


def tampered(tries, folder):
    with mock.patch("gibo.runs.api.fingerprint", return_value=None):  # a victim has values of two objectives
        test_bad_will.make_victims(folder / "victims")
    rng, findings, made, refused = np.random.default_rng(SEED), [], 0, 0
    victims = sorted((folder / "victims").iterdir())
    for victim in victims:
        known = list(cases(victim))
        chosen = rng.permutation(len(known))[: max(1, tries // len(victims))]
        ours, theirs = multiprocessing.Pipe()
        process = forked(test_bad_will.attack, victim, folder, [known[i] for i in chosen], theirs)
        theirs.close()
        try:
            wrong, was_refused, tried = ours.recv()
        except EOFError:
            wrong, was_refused, tried = ["the process ended"], 0, len(chosen)
        process.join()
        findings, made, refused = [*findings, *wrong], made + tried, refused + was_refused
    what = f"tampered journals, right checksums ({refused:,} refused)"
    return Row(what, made, made - len(findings), 0, 0, tuple(findings))


def rows(share, folder):
    yield damaged(share_of(2500, share), folder)
    yield tampered(share_of(400, share), folder)
