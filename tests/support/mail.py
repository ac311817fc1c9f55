# SPDX-License-Identifier: MIT
"""mail: an SMTP server that keeps what it is given."""

import socket
import threading


class MailServer:
    """Mails in `mails`: (recipients, text). It may be told to refuse, or to answer nothing."""

    def __init__(self, refuse=False, silent=False):
        self.mails, self.refuse, self.silent = [], refuse, silent
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"smtp://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def _serve(self):
        while True:
            try:
                link, _address = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(link,), daemon=True).start()

    def _talk(self, link):
        recipients = []
        with link, link.makefile("rwb", buffering=0) as stream:
            def say(text):
                stream.write(text.encode() + b"\r\n")
            if self.silent:
                stream.read()
                return
            say("220 test")
            for line in iter(stream.readline, b""):
                word = line.split()[0].upper() if line.split() else b""
                if word == b"RCPT":
                    recipients.append(line.decode().split("<")[1].split(">")[0])
                if word == b"QUIT":
                    say("221 bye")
                    return
                if word != b"DATA":
                    say("550 no" if self.refuse and word == b"MAIL" else "250 ok")
                    continue
                say("354 go on")
                text = b""
                while not text.endswith(b"\r\n.\r\n"):
                    text += stream.readline()
                self.mails.append((recipients, text.decode()))
                recipients = []
                say("250 kept")
