# SPDX-License-Identifier: MIT
"""Contexts of the command line: several sites by name, and no token at another site's address."""

import concurrent.futures
import json
import os
import socket
import stat
import subprocess

import pytest

import tokens
from sluice import BIN


class Home:
    """A user of the command line with a home of its own."""

    def __init__(self, site, folder):
        self.site, self.folder = site, str(folder)
        self.path = f"{self.folder}/sluice/contexts.json"

    def sluice(self, *args, stdin="", **env):
        clean = {name: value for name, value in self.site.environment().items()
                 if name not in ("SLUICE_URL", "SLUICE_TOKEN", "SLUICE_CONTEXT")}
        return subprocess.run([os.path.join(BIN, "sluice"), *args], input=stdin, text=True,
                              env=clean | {"XDG_CONFIG_HOME": self.folder} | env, timeout=120,
                              capture_output=True, check=False, cwd=self.site.folder)

    def good(self, *args, **more):
        done = self.sluice(*args, **more)
        assert done.returncode == 0, (args, done)
        return done.stdout

    def whoami(self, *args, **env):
        me = json.loads(self.good("whoami", "-o", "json", *args, **env))
        return me["user"], me["site"], me["context"]

    def contexts(self):
        return {context["name"]: context for context in json.loads(self.good("context", "ls", "-o", "json"))}

    def current(self):
        return [name for name, context in self.contexts().items() if context["current"]]


@pytest.fixture(name="home")
def made_home(site, tmp_path):
    return Home(site, tmp_path)


@pytest.fixture(scope="module")
def webs(site):
    return site.web("one"), site.web("two")


@pytest.fixture(scope="module")
def trap():
    """A listener that must hear nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def test_login_keeps_sites_by_name_and_each_command_may_choose(site, home, webs):
    one, two = webs
    home.good("login", one.url + "/", "--name", "prod", stdin=site.token("ann") + "\n")
    assert home.whoami() == ("ann", one.url, "prod")
    path = site.path("private", "token")
    with open(path, "w", encoding="ascii") as out:
        out.write(site.token("bob"))
    home.good("login", "--token-file", path, two.url)
    name = two.url[len("http://"):].replace(":", "-")
    assert home.current() == [name] and set(home.contexts()) == {"prod", name}
    assert home.contexts()["prod"]["user"] == "ann"
    assert home.whoami() == ("bob", two.url, name)
    assert home.whoami("--context", "prod") == ("ann", one.url, "prod")
    assert home.whoami(SLUICE_CONTEXT="prod") == ("ann", one.url, "prod")
    home.good("context", "use", "prod")
    assert home.whoami() == ("ann", one.url, "prod")
    home.good("context", "rm", "prod")
    assert home.current() == [] and set(home.contexts()) == {name}
    assert home.sluice("whoami").returncode == 2
    for gone in (("context", "use", "prod"), ("context", "rm", "prod")):
        assert "prod" in home.sluice(*gone).stderr


def test_the_file_is_the_owners_and_shows_no_token(site, home, webs):
    token = site.token("ann")
    done = home.sluice("login", webs[0].url, stdin=token)
    assert done.returncode == 0 and token not in done.stdout + done.stderr
    assert stat.S_IMODE(os.stat(home.path).st_mode) == 0o600
    assert token not in home.good("context", "ls") + home.good("context", "ls", "-o", "json")
    with open(home.path, encoding="utf-8") as kept:
        assert token in kept.read()


def test_a_token_that_the_site_does_not_take_is_not_kept(site, home, webs):
    wrong = tokens.token(tokens.Key(home.folder, "k1"), tokens.claims("ann", ["user"], "acme"))
    for text in (wrong, "", "two words", "x" * 20000):
        done = home.sluice("login", webs[0].url, stdin=text)
        assert done.returncode in (1, 2), done
    assert not os.path.exists(home.path)
    for url in ("example.org", "ftp://example.org", "http://ann@127.0.0.1:1", ""):
        assert home.sluice("login", url, stdin=site.token()).returncode == 2
    assert home.sluice("login", webs[0].url, "--name", "../x", stdin=site.token()).returncode == 2


def test_a_name_of_another_address_is_not_taken_over(site, home, webs):
    home.good("login", webs[0].url, "--name", "prod", stdin=site.token("ann"))
    done = home.sluice("login", webs[1].url, "--name", "prod", stdin=site.token("bob"))
    assert done.returncode == 1 and webs[0].url in done.stderr
    assert home.whoami() == ("ann", webs[0].url, "prod")
    home.good("login", webs[0].url, "--name", "prod", stdin=site.token("carl"))
    assert home.whoami() == ("carl", webs[0].url, "prod")


def test_no_token_goes_to_another_address(site, home, webs, trap):
    other = f"http://127.0.0.1:{trap.getsockname()[1]}"
    home.good("login", webs[0].url, "--name", "prod", stdin=site.token("ann"))
    home.good("login", webs[1].url, "--name", "test", stdin=site.token("bob"))
    for env in ({"SLUICE_URL": other}, {"SLUICE_URL": other, "SLUICE_CONTEXT": "prod"},
                {"SLUICE_TOKEN": "for-another-site"},
                {"SLUICE_TOKEN": "for-another-site", "SLUICE_CONTEXT": "prod"}):
        done = home.sluice("jobs", **env)
        assert done.returncode == 2 and "SLUICE_" in done.stderr, (env, done)
    done = home.sluice("jobs", SLUICE_URL=webs[0].url)  # the token of the context test stays there
    assert done.returncode == 2 and "--context prod" in done.stderr, done
    assert home.whoami("--context", "prod", SLUICE_URL=other, SLUICE_TOKEN="x")[0] == "ann"
    assert home.sluice("jobs", "--context", "prod", "--client-url", other).returncode == 2
    assert home.sluice("jobs", "--context", "nowhere").returncode == 2
    with pytest.raises(BlockingIOError):
        trap.accept()


def test_the_profile_of_former_versions_is_carried_over(site, home, webs):
    os.makedirs(f"{home.folder}/sluice")
    with open(f"{home.folder}/sluice/profile.json", "w", encoding="utf-8") as out:
        json.dump({"url": webs[0].url, "token": site.token("ann"), "tenant": "acme"}, out)
    assert home.whoami() == ("ann", webs[0].url, "profile")
    home.good("login", webs[1].url, "--name", "test", stdin=site.token("bob"))
    assert home.whoami("--context", "profile") == ("ann", webs[0].url, "profile")
    assert home.current() == ["test"]


def test_logins_at_the_same_time_are_all_kept(site, home, webs):
    token = site.token("ann")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: home.good("login", webs[n % 2].url, "--name", f"site{n}", stdin=token),
                      range(12)))
    assert set(home.contexts()) == {f"site{n}" for n in range(12)}


def test_a_file_that_is_no_list_of_contexts_is_left_alone(site, home, webs):
    os.makedirs(f"{home.folder}/sluice")
    with open(home.path, "w", encoding="utf-8") as out:
        out.write("not json")
    for args in (("jobs",), ("login", webs[0].url), ("context", "ls")):
        done = home.sluice(*args, stdin=site.token())
        assert done.returncode in (1, 2) and "contexts.json" in done.stderr, done
    with open(home.path, encoding="utf-8") as kept:
        assert kept.read() == "not json"


def test_an_expired_token_says_when_it_expired(site, home, webs):
    late = tokens.token(site.key, tokens.claims("ann", ["user"], "acme", exp=1000000000))
    done = home.sluice("jobs", SLUICE_URL=webs[0].url, SLUICE_TOKEN=late)
    assert done.returncode == 1 and "the token expired" in done.stderr, done
    strange = tokens.Key(site.path("private"), "strange")  # of no key of ours: the service is silent
    late = tokens.token(strange, tokens.claims("ann", ["user"], "acme", exp=1000000000))
    done = home.sluice("jobs", SLUICE_URL=webs[0].url, SLUICE_TOKEN=late)
    assert done.returncode == 1 and "; it expired" in done.stderr, done
