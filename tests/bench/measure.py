# SPDX-License-Identifier: MIT
"""measure: figures of a run, the goals that they are held against, and the table of them all."""

import statistics

SYSTEMS = ("sluice", "celery", "bullmq", "raw")
TITLES = {"sluice": "Sluice", "celery": "Celery", "bullmq": "BullMQ", "raw": "raw limit"}


class Goal:
    """bound: what must be reached. Without `of` it is an absolute figure in the measure's unit;
    with `of`, how many times better than that system."""

    def __init__(self, bound, of=None, text=None):
        self.bound, self.of, self.text = bound, of, text

    def judge(self, measure):
        """{text, seen, met}; met is None when something was not measured."""
        ours = measure.median("sluice")
        higher = measure.better == "higher"
        if self.of:
            theirs = measure.median(self.of)
            text = self.text or f"{self.bound:g}x {TITLES[self.of]}"
            seen = None if None in (ours, theirs) else times_better(ours, theirs, higher)
            met = None if seen is None else seen >= self.bound
        else:
            text = self.text or f"{'>=' if higher else '<='} {self.bound:g} {measure.unit}".strip()
            seen = ours
            met = None if ours is None else (ours >= self.bound if higher else ours <= self.bound)
        return {"text": text, "seen": seen, "met": met}


def times_better(ours, theirs, higher):
    above, below = (ours, theirs) if higher else (theirs, ours)
    if below == 0:
        return float("inf") if above > 0 else 1.0
    return above / below


class Measure:
    """One line of the table: figures by system, one per round."""

    def __init__(self, row, text, unit, better="lower", goals=()):
        assert better in ("lower", "higher")
        self.row, self.text, self.unit, self.better = row, text, unit, better
        self.goals = list(goals)
        self.values = {}

    def add(self, system, value):
        self.values.setdefault(system, []).append(value)
        return value

    def median(self, system):
        values = self.values.get(system)
        return statistics.median(values) if values else None

    def document(self):
        shown = {}
        for system, values in self.values.items():
            shown[system] = {"median": statistics.median(values), "min": min(values),
                             "max": max(values), "all": values}
        return {"row": self.row, "text": self.text, "unit": self.unit, "better": self.better,
                "values": shown, "goals": [goal.judge(self) for goal in self.goals]}


# ---- the table, from documents alone: bench writes them, a later run may print them

def figure(value):
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def cell(document, system):
    value = document["values"].get(system)
    if value is None:
        return "-"
    if value["min"] == value["max"]:
        return figure(value["median"])
    return f"{figure(value['median'])} ({figure(value['min'])}..{figure(value['max'])})"


def ratios(document):
    ours = document["values"].get("sluice")
    higher = document["better"] == "higher"
    found = []
    for system in SYSTEMS[1:]:
        theirs = document["values"].get(system)
        if ours is None or theirs is None or 0 in (ours["median"], theirs["median"]):
            continue  # nothing is so many times nothing
        ratio = times_better(ours["median"], theirs["median"], higher)
        found.append(f"{figure(ratio)}x {TITLES[system]}")
    return ", ".join(found) or "-"


def verdict(document):
    words = []
    for goal in document["goals"]:
        word = {True: "met", False: "**MISSED**", None: "not measured"}[goal["met"]]
        seen = "" if goal["seen"] is None or goal["met"] is not False else f" ({figure(goal['seen'])})"
        words.append(f"{goal['text']}: {word}{seen}")
    return "; ".join(words) or "-"


def table(documents):
    """Markdown; every measure is there, whatever became of it."""
    head = ["row", "measure", *(TITLES[system] for system in SYSTEMS), "better by", "goal"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for document in documents:
        cells = [document["row"], ", ".join(filter(None, (document["text"], document["unit"]))),
                 *(cell(document, system) for system in SYSTEMS), ratios(document),
                 verdict(document)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def missed(documents):
    return [document for document in documents
            if any(goal["met"] is not True for goal in document["goals"])]
