"""Adds what customers bought to their balances, takes back what Apple refunded, and acknowledges both.

Needs PERENNIAL_URL, PERENNIAL_KEY (of scope write), APP, and a SQLite file CREDITS for the balances. Ends with Ctrl-C, or
after ROUNDS answers. Run a second one with ENVIRONMENT=Sandbox and a file of its own: what testers and App Review buy is in
that queue alone. Standard library only.
"""

import json
import os
import sqlite3
import urllib.request

url, key, app = os.environ["PERENNIAL_URL"], os.environ["PERENNIAL_KEY"], os.environ["APP"]
environment = os.environ.get("ENVIRONMENT", "Production")
rounds = int(os.environ.get("ROUNDS", "0"))
wait = os.environ.get("WAIT", "30")
books = sqlite3.connect(os.environ.get("CREDITS", "credits.sqlite"))
books.execute(
    "CREATE TABLE IF NOT EXISTS credit (delivery_id TEXT PRIMARY KEY, customer TEXT, credit TEXT, units INTEGER, done INTEGER)"
)


def call(path, body=None):
    request = urllib.request.Request(
        f"{url}/v1/apps/{app}/{path}", body and json.dumps(body).encode(), {"Authorization": f"Bearer {key}"}
    )
    if body:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


after = count = 0
while rounds == 0 or count < rounds:
    count += 1
    page = call(f"deliveries?state=due&limit=100&environment={environment}&after={after}&wait={wait}")
    # A delivery comes at least once, so its id is stored with the units, in one transaction.
    with books:
        for one in page["deliveries"]:
            if one["credit"] is None:
                continue
            # Units are never negative. An odd turn gives them, an even turn takes them back.
            units = one["units"] if one["turn"] % 2 == 1 else -one["units"]
            books.execute(
                "INSERT INTO credit VALUES (?, ?, ?, ?, 0) ON CONFLICT DO NOTHING",
                (one["delivery_id"], one["customer"], one["credit"], units),
            )
    # Also what an earlier run stored and could not acknowledge.
    ids = {one["delivery_id"] for one in page["deliveries"]}
    ids |= {row[0] for row in books.execute("SELECT delivery_id FROM credit WHERE NOT done LIMIT 900")}
    if ids:
        results = call("deliveries:ack", {"ids": sorted(ids)})["results"]
        with books:
            for one in results:
                # What was skipped meanwhile is not given: it moved to another customer, or a person skipped it.
                change = "DELETE FROM credit" if one["state"] == "skipped" else "UPDATE credit SET done = 1"
                books.execute(f"{change} WHERE delivery_id = ?", (one["delivery_id"],))
    after = page["next"]
for customer, credit, units in books.execute("SELECT customer, credit, sum(units) FROM credit GROUP BY 1, 2"):
    print(customer, credit, units)
