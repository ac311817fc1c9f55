# SPDX-License-Identifier: MIT
"""The page says what is so, and acts on what it says."""

import browser


def test_the_search_box_the_list_the_address_and_the_dialog_agree(fresh):
    web = fresh.web()  # and no worker: jobs wait
    print(browser.run("agree.mjs", fresh, web))
