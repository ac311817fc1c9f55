# SPDX-License-Identifier: MIT
"""tokens: keys and signed tokens, made with openssl and nothing of Sluice's own code."""

import base64
import hashlib
import hmac
import json
import os
import subprocess
import time


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _openssl(*args, data=None):
    return subprocess.run(["openssl", *args], input=data, capture_output=True, check=True).stdout


class Key:
    """A key pair: alg RS256 or ES256."""

    def __init__(self, folder, kid, alg="RS256"):
        self.kid = kid
        self.alg = alg
        self.path = os.path.join(folder, f"{kid}.private.pem")
        kind = (["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if alg == "RS256"
                else ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
        os.makedirs(folder, exist_ok=True)
        _openssl("genpkey", "-algorithm", *kind, "-out", self.path)
        self.public = _openssl("pkey", "-in", self.path, "-pubout")

    def install(self, keys_dir, tenant):
        """Puts the public key where the service looks for those of a tenant."""
        folder = os.path.join(keys_dir, tenant)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{self.kid}.pem")
        with open(path + ".new", "wb") as out:
            out.write(self.public)
        os.rename(path + ".new", path)
        return path

    def sign(self, data):
        signature = _openssl("dgst", "-sha256", "-sign", self.path, data=data)
        return signature if self.alg == "RS256" else _raw_ecdsa(signature)


def _raw_ecdsa(der):
    """SEQUENCE of two INTEGERs -> r and s of 32 bytes each."""
    numbers, at = [], 2
    for _ in range(2):
        size = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2:at + 2 + size], "big"))
        at += 2 + size
    return b"".join(number.to_bytes(32, "big") for number in numbers)


class SharedSecret:
    """For HS256; `secret` may well be something that nobody should sign with."""

    def __init__(self, kid, secret):
        self.kid, self.secret, self.alg = kid, secret, "HS256"

    def sign(self, data):
        return hmac.new(self.secret, data, hashlib.sha256).digest()


def claims(user, roles, tenant, /, life_s=3600, **more):
    """None as a value leaves a claim out."""
    now = int(time.time())
    made = {"sub": user, "tenant": tenant, "roles": roles, "iat": now, "exp": now + life_s}
    made |= more
    return {name: value for name, value in made.items() if value is not None}


def token(key, body, **header):
    head = {"alg": key.alg, "typ": "JWT", "kid": key.kid} | header
    head = {name: value for name, value in head.items() if value is not None}
    text = b64(json.dumps(head).encode()) + "." + b64(json.dumps(body).encode())
    return text + "." + b64(key.sign(text.encode("ascii")))


def unsigned(body, alg="none", kid=None):
    head = {"alg": alg, "typ": "JWT"} | ({"kid": kid} if kid else {})
    return b64(json.dumps(head).encode()) + "." + b64(json.dumps(body).encode()) + "."
