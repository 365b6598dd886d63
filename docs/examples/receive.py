"""Receives a webhook's messages and keeps a mirror of what customers may use. Needs `pip install standardwebhooks`.

WEBHOOK_SECRET_FILE names the file with the secret, MIRROR the mirror; HOST and PORT are 127.0.0.1 and 9000. GET shows it: what
each customer may use with the environment, null where only GET .../entitlements says it; not confirmed: since a restore.
"""

import json
import os
import pathlib
import sqlite3
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(pathlib.Path(os.environ["WEBHOOK_SECRET_FILE"]).read_text().strip())
mirror = sqlite3.connect(os.environ.get("MIRROR", "mirror.db"))
mirror.execute("CREATE TABLE IF NOT EXISTS customer (app, name, since, position, access, PRIMARY KEY (app, name))")


def now(access):  # What may be used at this moment, by the clock alone. Instants of one form compare as text.
    at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return None if access is None else {  # From the back, so that production comes over the sandbox.
        x["entitlement"]: x["environment"] for x in reversed(access)
        if (x["from"] or at) <= at and (x["until"] is None or x["until"] > at)}


class Receiver(BaseHTTPRequestHandler):  # By HTTP/1.0: a connection ends with its answer, so that none blocks another.
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            data = webhook.verify(body, dict(self.headers.items()))["data"]
        except WebhookVerificationError:
            return self.answer(400, "The signature is wrong.")
        if data.get("customer") is not None:
            with mirror:  # Only what is newer counts, so a message that comes late or twice does no harm.
                mirror.execute(
                    "INSERT INTO customer VALUES (?, ?, ?, ?, ?) ON CONFLICT (app, name) DO UPDATE SET"
                    " since = excluded.since, position = excluded.position, access = excluded.access"
                    " WHERE (excluded.since, excluded.position) > (customer.since, customer.position)",
                    (data["event"]["app"], data["customer"], data["feed_since"], data["position"],
                     json.dumps(data["access"])))
        self.answer(204)

    def do_GET(self):
        rows = mirror.execute(
            "SELECT app, name, since = (SELECT max(since) FROM customer), access FROM customer ORDER BY app, name").fetchall()
        self.answer(200, json.dumps([
            {"app": app, "customer": name, "confirmed": confirmed == 1, "entitlements": now(json.loads(access))}
            for app, name, confirmed, access in rows]))

    def answer(self, status, text=""):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words):
        pass


HTTPServer((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
