# SPDX-License-Identifier: MIT
"""What a job writes, on the page."""

import browser

LINES = 8000
LONG = (f"i=0; while [ $i -lt {LINES} ]; do i=$((i + 1)); "
        "echo \"line $i of a long output that comes in more than two parts\"; done; printf '%0500d\\n' 0")
COLOURS = r"""
printf '\033[31mred\033[0m and \033[1mbold\033[0m, \033[4munder\033[24m \033[38;2;20;200;40mrgb green\033[m\n'
printf '\033[44mblue ground\033[0m \033[7minverse\033[0m \033[38;5;208mpalette\033[0m \033[97mwhite\033[0m \033[30mblack\033[0m\n'
printf '\033]0;evil title\007<img src=x onerror=alert(1)>\n'
printf '10%%\r50%%\r100%%\n\033[2J\033[Hback\b\b\n'
printf '\033[33mwent wrong\033[0m\n' >&2
printf 'plain end\n'
"""
GATED = """
wait_for() { while [ ! -e "$1/$2" ]; do sleep 0.05; done; }
echo out 1; wait_for "$1" a; echo err 1 >&2; wait_for "$1" b; echo out 2; wait_for "$1" c; echo err 2 >&2; wait_for "$1" d
"""


def test_output_is_shown_as_text_with_its_end_first(site, tmp_path):
    web = site.web()
    site.worker()
    admin = site.client(web, "admin", "admin")
    ids = {
        "long": admin.submit("sh", "-c", LONG, name="long"),
        "endless": admin.submit("seq", "12000", name="endless"),
        "colours": admin.submit("sh", "-c", COLOURS, name="colours"),
        "gated": admin.submit("sh", "-c", GATED, "sh", str(tmp_path), name="gated"),
    }
    for name in ("long", "endless", "colours"):
        admin.wait_end(ids[name])
    print(browser.run("output.mjs", site, web, ids=ids, gates=str(tmp_path), lines=LINES))
