# SPDX-License-Identifier: MIT
"""doc_tables: the parts of the documentation that are made from the tables of the code.

They stand between `<!-- made: NAME -->` and `<!-- end -->`.
"""

import re

import sources

ERROR = re.compile(r'^ERR\(\w+,\s*(\d+),\s*(\d+),\s*\w+,\s*"([^"]*)",\s*"([^"]*)"\)', re.M)
STATE = re.compile(r'^JOB_STATE\((\w+),\s*"(\w+)",\s*(\w+),\s*(.*)\)$', re.M)
CONDITION = re.compile(r'^JOB_CONDITION\((\w+),\s*\d+,\s*"([^"]+)"\)', re.M)
ROUTE = re.compile(r'^ROUTE\((\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*\w+,\s*\w+,\s*'
                   r'"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)', re.M)
# What is in job_state.c: the words that stand for several states.
LEAVE = ("BLOCKED", "PAUSED", "CANCELLED", "FAILED")
MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.S)


def _states():
    """[(name, ends, set of states that it may move to)] in the order of the table."""
    rows = STATE.findall(sources.read("common/model/job_state.def"))
    active = [name for name, _, ends, to in rows if ends == "false" and "LEAVE" in to]
    made = []
    for name, _, ends, to in rows:
        targets = set(re.findall(r"TO\((\w+)\)", to))
        if "LEAVE" in to:
            targets |= set(LEAVE)
        if re.search(r"\bACTIVE\b", to):
            targets |= set(active)
        made.append((name, ends == "true", targets))
    return made, active


def _diagram():
    """Moves that all active states have are drawn once, from the box around them; so are those to
    all of them. A move to itself, a step done again, is not drawn."""
    states, active = _states()
    shared = set.intersection(*(to for name, _, to in states if name in active))
    lines = ["stateDiagram-v2", "    state active {"]
    lines += [f"        {name} --> {other}" for name, _, to in states if name in active
              for other, _, _ in states if other in to and other in active and other != name]
    lines += ["    }", f"    [*] --> {states[0][0]}"]
    for name, ends, to in states:
        if ends:
            lines.append(f"    {name} --> [*]")
            continue
        if name in active:
            to = to - shared - set(active)
        elif to >= set(active):
            lines.append(f"    {name} --> active")
            to = to - set(active)
        lines += [f"    {name} --> {other}" for other, _, _ in states if other in to]
    lines += [f"    active --> {other}" for other, _, _ in states if other in shared]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _moves():
    states, active = _states()
    rows = ["| state | may move to |", "|---|---|"]
    for name, ends, to in states:
        words = [other for other, _, _ in states if other in to]
        if to >= set(active):
            words = ["every active state"] + [word for word in words if word not in active]
        words = ["itself" if word == name else word for word in words]
        rows.append(f"| {name} | {'nothing: it has ended' if ends else ', '.join(words)} |")
    return "\n".join(rows) + "\n"


def states():
    return _diagram() + "\n" + _moves()


def conditions():
    rows = CONDITION.findall(sources.read("common/model/condition.def"))
    return "| condition | |\n|---|---|\n" + "".join(f"| {name} | {what} |\n" for name, what in rows)


def errors():
    rows = ERROR.findall(sources.read("common/base/err.def"))
    return "| code | status | title | cause and cure |\n|---|---|---|---|\n" + "".join(
        f"| SLUICE-{number} | {status} | {title} | {cure} |\n"
        for number, status, title, cure in rows)


def _role(least, others):
    if least == "PUBLIC":
        return "none"
    return least.lower() + (f"; {others.lower()} for others" if others != least else "")


def routes():
    made = "| method and path | role | query | |\n|---|---|---|---|\n"
    for _, method, least, others, path, query, what in ROUTE.findall(
            sources.read("webapp/routes.def")):
        asked = ", ".join(f"`{name}`" for name in query.split())
        made += f"| `{method} {path}` | {_role(least, others)} | {asked} | {what} |\n"
    return made


TABLES = {"states": states, "conditions": conditions, "errors": errors, "routes": routes}


def renewed(text):
    """The text with every made part as the code has it now."""
    return MADE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], text)
