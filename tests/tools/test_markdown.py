# SPDX-License-Identifier: MIT
"""What is seen of the documentation's blocks, and when output counts as what a page shows."""

import markdown

PAGE = """# A page

<!-- run: last -->
```sh
./dev down
```
```text
stopped
```

- an item

      that goes on

```json
{}
```
"""


def test_blocks_have_their_marker_and_the_output_below_them():
    blocks, faults = markdown.read("page.md", PAGE)
    assert not faults
    assert [(block.language, block.marker, block.text) for block in blocks] == [
        ("sh", "last", "./dev down\n"), ("text", None, "stopped\n"), ("json", None, "{}\n")]
    assert blocks[0].shown is blocks[1] and blocks[0].place == "page.md:4"


def test_what_keeps_to_no_convention_is_told():
    for text, fault in (("```\nls\n```\n", "without a language"),
                        ("a\n\n    ls\n", "an indented block"),
                        ("<!-- run: last -->\n\n```sh\n```\n", "before no block"),
                        ("```sh\nls\n", "has no end")):
        assert fault in " ".join(markdown.read("page.md", text)[1]), text


def test_ids_and_times_and_blanks_may_differ_and_nothing_else():
    shown = "ID  01a1fae4-7eb7-7001-ac6f-f969e92565f2 at 2026-11-20T21:37:21.079Z in 3.1 s\n"
    assert markdown.agrees(
        shown, "ID 01a1fae5-0000-7001-ac6f-f969e92565f2   at 2027-01-01T00:00:00Z in 17 s\n\n")
    assert not markdown.agrees(shown, "ID 01a1fae5-0000-7001-ac6f-f969e92565f2 at noon in 17 s\n")
    assert not markdown.agrees("one\n", "one\ntwo\n")
    assert not markdown.agrees("one\ntwo\n", "one\n")


def test_dots_stand_for_any_text_or_any_lines():
    assert markdown.agrees("a...z\n...\nend\n", "a to z\n1\n2\nend\n")
    assert markdown.agrees("...\nend\n", "end\n")
    assert not markdown.agrees("a...z\n", "a\nz\n")
