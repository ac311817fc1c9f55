# SPDX-License-Identifier: MIT
"""contract: every reply that a client of a test gets, compared with the contract of the service.

The routes, statuses, headers and schemas are those that `sluice-web --contract` says; bodies are
judged by jsonschema. The contract lets answers grow, for clients; here an answer has no member that
it does not tell.
"""

import json
import re
import subprocess
import threading
import urllib.parse

import jsonschema

# What HTTP itself, or a browser, wants; no part of the contract.
PLAIN_HEADERS = {"date", "content-length", "content-type", "connection", "transfer-encoding",
                 "cache-control", "x-content-type-options", "vary", "content-encoding",
                 "content-security-policy", "referrer-policy", "strict-transport-security"}
CROSS_ORIGIN = "access-control-"
JSON_TYPES = ("application/json", "application/problem+json")
LIBRARY = (400, 413, 414, 431, 501, 505)  # refused by the HTTP library, with a page of its own
ROWS = 20  # of a long list so many are looked at at both ends

FORMATS = jsonschema.FormatChecker(formats=())
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@FORMATS.checks("uuid")
def _is_uuid(value):
    return not isinstance(value, str) or UUID.fullmatch(value) is not None


@FORMATS.checks("date-time")
def _is_time(value):
    return not isinstance(value, str) or TIME.fullmatch(value) is not None


@FORMATS.checks("uri-reference")
def _is_reference(value):
    return not isinstance(value, str) or re.search(r"[\s<>\"\\^`{|}]", value) is None


class Contract:
    """The document, ready to judge with. Threads may share it."""

    def __init__(self, document):
        self.document = document
        self.validators, self.lock = {}, threading.Lock()
        self.paths = []
        for path, item in document["paths"].items():
            slashes = {parameter["name"] for parameter in map(self.resolve, item["parameters"])
                       if parameter.get("x-takes-slashes")}
            self.paths.append((path.count("{"), _pattern(path, slashes), path, item))
        self.paths.sort(key=lambda row: (row[0], "}:" not in row[2]))

    def resolve(self, value):
        while "$ref" in value:
            found = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            value = found
        return value

    def whole(self, schema, closed, is_part=False):
        """Without references; closed: objects have no other members than those that are told.
        is_part: of an allOf, which is closed as a whole."""
        if isinstance(schema, list):
            return [self.whole(item, closed, is_part) for item in schema]
        if not isinstance(schema, dict):
            return schema
        schema = {name: self.whole(value, closed, name == "allOf") if name != "examples" else []
                  for name, value in self.resolve(schema).items()}
        if closed and not is_part and "allOf" in schema:
            schema["unevaluatedProperties"] = False
        elif closed and not is_part and "object" in schema.get("type", ()):
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)
        return schema

    def validator(self, key, schema, closed):
        with self.lock:
            if key not in self.validators:
                self.validators[key] = jsonschema.Draft202012Validator(
                    self.whole(schema, closed), format_checker=FORMATS)
            return self.validators[key]

    def faults(self, key, schema, value, closed=True):
        for fault in self.validator((key, closed), schema, closed).iter_errors(_short(value)):
            place = "/".join(str(part) for part in fault.absolute_path)
            yield f"at /{place}: {fault.message[:300]}"

    def find(self, path):
        """The template and its item; None, None for a path that is not told."""
        parts = path.split("/")
        for _, pattern, template, item in self.paths:
            if pattern.fullmatch("/".join(urllib.parse.unquote(part).replace("/", "\0")
                                          for part in parts)):
                return template, item
        return None, None

    # ---- one exchange

    def compare(self, exchange):
        """Where it was, and a list of what differs."""
        answer = exchange.answer
        template, item = self.find(exchange.target.split("?")[0])
        method = "get" if exchange.method == "HEAD" else exchange.method.lower()
        operation = (item or {}).get(method) if method != "parameters" else None
        if _is_of_library(answer):
            return "the library", []
        if operation is None and exchange.method == "OPTIONS" and item:
            return "options", [] if answer.status == 204 else [f"OPTIONS is {answer.status}"]
        if operation is None:
            place = template or "no path"
            return place, [f"{exchange.method} {place}: {fault}"
                           for fault in self._compare_stray(exchange, item)]
        name = operation["operationId"]
        response = operation["responses"].get(str(answer.status))
        if response is None:
            return name, [f"{name}: {answer.status} is not a status of it: {answer!r}"]
        response = self.resolve(response)
        place = f"{name} {answer.status}"
        found = [*self._compare_content(exchange, response, place),
                 *self._compare_headers(answer, response)]
        if answer.status < 300:
            found += self._compare_request(exchange, operation, name)
        return name, [f"{place}: {fault}" for fault in found]

    def compare_refusal(self, exchange):
        """As compare(), of a refusal whose route nobody knows."""
        if _is_of_library(exchange.answer):
            return "the library", []
        return "no route", [] if exchange.answer.status < 400 else [
            f"a refusal: {fault}" for fault in self._compare_refusal(exchange)]

    def _compare_stray(self, exchange, item):
        """Of a path or a method that nobody serves."""
        status = exchange.answer.status
        if status in (404, 405) and status != (405 if item else 404):
            yield f"{status} is wrong here"
        yield from self._compare_refusal(exchange)

    def _compare_refusal(self, exchange):
        status = exchange.answer.status
        response = self.document["components"]["responses"].get(f"Problem{status}")
        if response is None:
            yield f"{status} is not a refusal"
            return
        yield from self._compare_content(exchange, response, f"stray {status}")
        yield from self._compare_headers(exchange.answer, response)

    def _compare_content(self, exchange, response, place):
        answer = exchange.answer
        kind = (answer.headers["Content-Type"] or "").split(";")[0].strip()
        content = response.get("content")
        if content is None:
            if answer.body:
                yield f"a body where there is none: {answer!r}"
            return
        if kind not in content and "*/*" not in content:
            yield f"'{kind}' is not one of its types: {', '.join(content)}"
            return
        if kind not in JSON_TYPES or exchange.method == "HEAD" or "*/*" in content:
            return
        try:
            value = json.loads(answer.body)
        except ValueError as fault:
            yield f"not JSON: {fault}"
            return
        sparse = "fields=" in exchange.target.partition("?")[2]  # required members are left out
        for fault in self.faults((place, kind), content[kind]["schema"], value):
            if not (sparse and answer.status == 200 and "is a required property" in fault):
                yield fault

    def _compare_headers(self, answer, response):
        told = {name.lower(): self.resolve(header)
                for name, header in response.get("headers", {}).items()}
        for name, header in told.items():
            value = answer.headers[name]
            if value is None:
                if header.get("required"):
                    yield f"there is no header {name}"
                continue
            schema = header["schema"]
            if schema["type"] == "integer":
                value = int(value) if value.isdigit() else value
            for fault in self.faults(("header", name), schema, value):
                yield f"header {name} {fault}"
        for name in answer.headers:
            name = name.lower()
            if name not in told and name not in PLAIN_HEADERS and not name.startswith(CROSS_ORIGIN):
                yield f"the header {name} is not told"

    def _compare_request(self, exchange, operation, name):
        """What was taken is as it is told: a contract may not be narrower than the service."""
        query = urllib.parse.parse_qs(exchange.target.partition("?")[2], keep_blank_values=True)
        known = {parameter["name"] for parameter in map(self.resolve, operation["parameters"])
                 if parameter["in"] == "query"}
        for parameter in set(query) - known:
            yield f"?{parameter} was taken and is not told"
        body = operation.get("requestBody")
        if body is None or not exchange.sent:
            return
        schema = body["content"]["application/json"]["schema"]
        try:
            value = json.loads(exchange.sent)
        except ValueError:
            yield "a body that is not JSON was taken"
            return
        if name == "job_batch":  # a refusal for each that is not
            items = json.loads(exchange.answer.body)["items"]
            value["jobs"] = [job for job, item in zip(value["jobs"], items)
                             if item["status"] < 300] or [{"name": "none was taken"}]
        for fault in self.faults((name, "request"), schema, value, closed=False):
            yield f"a request was taken that is not as told {fault}"


def _pattern(template, slashes):
    def part(match):
        return "(.+)" if match.group(1) in slashes else "([^/]+)"
    pieces = re.split(r"(\{\w+\})", template)
    return re.compile("".join(re.sub(r"\{(\w+)\}", part, piece) if piece.startswith("{")
                              else re.escape(piece) for piece in pieces), re.S)


def _short(value):
    """Long lists without their middle."""
    if isinstance(value, list) and len(value) > 2 * ROWS:
        value = value[:ROWS] + value[-ROWS:]
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return value


def _is_of_library(answer):
    return (answer.status in LIBRARY and answer.headers["X-Request-Id"] is None
            and answer.headers["Content-Type"] != "application/problem+json")


def contract_of(program):
    """What this program says of itself; None: it is too old to say."""
    said = subprocess.run([program, "--contract"], stdout=subprocess.PIPE, check=False, timeout=60)
    return None if said.returncode else Contract(json.loads(said.stdout))
