# SPDX-License-Identifier: MIT
"""certificates: a CA of the test's own and what it signs, made with openssl."""

import os
import ssl
import subprocess

LOCAL = "IP:127.0.0.1,DNS:localhost"


def _openssl(*args):
    subprocess.run(["openssl", *args], capture_output=True, check=True)


def _rename(path):
    """Never half a file where a server may look."""
    os.rename(path + ".new", path)


class Authority:
    """A CA: `ca` is the path of its certificate. Keys are P-256, which is quick."""

    def __init__(self, folder, name="Test CA"):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.name = folder, name
        self.ca, self.key = self.path("ca.pem"), self.path("ca.key")
        self.serial = 1
        self._new_key(self.key)
        _openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/CN={name}", "-days", "30",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", self.ca)

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def _new_key(path):
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                 path + ".new")
        os.chmod(path + ".new", 0o600)
        _rename(path)

    def issue(self, name, names=LOCAL, purpose="serverAuth", days=10):
        """(certificate, key): paths. days 0: it has expired. The same name again
        replaces both files."""
        cert, key, asked = self.path(f"{name}.pem"), self.path(f"{name}.key"), self.path("request")
        self.serial += 1
        with open(self.path("extensions"), "w", encoding="ascii") as out:
            out.write(f"basicConstraints=CA:FALSE\nextendedKeyUsage={purpose}\n"
                      "keyUsage=critical,digitalSignature\n"
                      + (f"subjectAltName={names}\n" if names else ""))
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                 key + ".new")
        os.chmod(key + ".new", 0o600)
        _openssl("req", "-new", "-key", key + ".new", "-subj", f"/CN={name}", "-out", asked)
        if days > 0:
            _openssl("x509", "-req", "-in", asked, "-CA", self.ca, "-CAkey", self.key,
                     "-set_serial", str(self.serial), "-days", str(days), "-extfile",
                     self.path("extensions"), "-out", cert + ".new")
        else:
            self._sign_expired(asked, cert + ".new")
        _rename(key)
        _rename(cert)
        return cert, key

    def _sign_expired(self, asked, cert):
        """One whose time is over: `openssl x509` does not make such."""
        with open(self.path("index"), "w", encoding="ascii"):
            pass
        with open(self.path("ca.cnf"), "w", encoding="ascii") as out:
            out.write("[ca]\ndefault_ca=test\n[test]\npolicy=any\ndefault_md=sha256\n"
                      f"database={self.path('index')}\nnew_certs_dir={self.folder}\n"
                      "rand_serial=yes\n[any]\ncommonName=supplied\n")
        _openssl("ca", "-batch", "-notext", "-config", self.path("ca.cnf"), "-cert", self.ca,
                 "-keyfile", self.key, "-in", asked, "-out", cert, "-extfile",
                 self.path("extensions"), "-startdate", "20200101000000Z", "-enddate",
                 "20200201000000Z")

    def context(self, cert=None, key=None):
        """What a client of servers with this CA uses; with its own certificate if one is given."""
        context = ssl.create_default_context(cafile=self.ca)
        if cert:
            context.load_cert_chain(cert, key)
        return context
