# SPDX-License-Identifier: MIT
"""witness: sees every reply that the clients of a test get, has it compared with the contract
(contract.py), and keeps what differs until the test ends, which fails by it (conftest.py).

Only services that it was told of are looked at: whoever needs none of this needs no jsonschema.
"""

import collections
import http.client
import io
import json
import os
import threading

SEEN_MAX = 20000

Exchange = collections.namedtuple("Exchange", "method target sent answer")  # sent: bytes or None
Answer = collections.namedtuple("Answer", "status headers body")


class _Bytes:
    """What http.client takes for a socket."""

    def __init__(self, raw):
        self.raw = raw

    def makefile(self, *_):
        return io.BytesIO(self.raw)


class Witness:
    """Sees the replies of the services that it was told of, and remembers what differs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.ports, self.contracts = {}, {}
        self.replies = collections.Counter()  # by operation and status
        self.differences = []                 # since the last look
        self.all, self.seen = [], {}

    def watch(self, port, program):
        """The service that this program is, at this port."""
        from contract import contract_of  # pylint: disable=import-outside-toplevel
        with self.lock:
            if program not in self.contracts:
                self.contracts[program] = contract_of(program)
            self.ports[port] = self.contracts[program]

    def forget(self, port):
        with self.lock:
            self.ports.pop(port, None)

    def note(self, port, exchange):
        contract = self.ports.get(port)
        if contract is None:
            return
        answer = exchange.answer
        key = (exchange.method, exchange.target, answer.status, exchange.sent, answer.body,
               tuple(answer.headers))
        place, found = self.seen.get(hash(key)), []  # whoever polls gets the same again
        if place is None:
            place, found = contract.compare(exchange)
        with self.lock:
            if len(self.seen) < SEEN_MAX and not found:
                self.seen[hash(key)] = place
            self.replies[(place, answer.status)] += 1
            self._add(found)

    def note_raw(self, raw):
        """A refusal as it came over a socket, if it is whole: of no route that is known."""
        try:
            answer = http.client.HTTPResponse(_Bytes(raw))
            answer.begin()
            body = answer.read()
        except (http.client.HTTPException, OSError):
            return
        found = Exchange("GET", "/", None, Answer(answer.status, answer.headers, body))
        for contract in [known for known in self.contracts.values() if known][:1]:
            place, faults = contract.compare_refusal(found)
            with self.lock:
                self.replies[(place, answer.status)] += 1
                self._add(faults)

    def note_event(self, port, schema, value):
        """What a stream of events brought."""
        contract = self.ports.get(port)
        if contract is None:
            return
        found = [f"event {schema}: {fault}" for fault in
                 contract.faults(("event", schema),
                                 {"$ref": f"#/components/schemas/{schema}"}, value)]
        with self.lock:
            self.replies[(f"event {schema}", 200)] += 1
            self._add(found)

    def _add(self, found):
        new = [difference for difference in found if difference not in self.all]
        self.differences += new
        self.all += new

    def take(self):
        """What differed since the last call."""
        with self.lock:
            taken, self.differences = self.differences, []
            return taken

    def write(self, folder, name):
        """All that was seen, as a document: for a table over all tests."""
        os.makedirs(folder, exist_ok=True)
        rows = [[place, status, count] for (place, status), count in sorted(self.replies.items())]
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as out:
            json.dump({"replies": rows, "differences": self.all}, out, indent=1)


WITNESS = Witness()
