# SPDX-License-Identifier: MIT
"""The page says what is so, and acts on what it says."""

import browser


def test_the_search_box_the_list_the_address_and_the_dialog_agree(fresh):
    web = fresh.web()  # and no worker: jobs wait
    print(browser.run("agree.mjs", fresh, web))


def test_it_says_who_serves_a_queue_who_ran_a_job_and_what_happened_before(fresh):
    web = fresh.web()
    admin = fresh.client(web, "admin", "admin")
    fresh.worker()
    for name, priority in (("held", 100), ("empty", 50)):
        admin.put_queue(name, priority, f"'{name}' IN tags").expect(201)
    admin.submit("true", name="kept", tags=["held"])
    done = admin.submit("true", name="early")
    admin.wait_end(done)
    print(browser.run("says.mjs", fresh, web, ids={"done": done}))
