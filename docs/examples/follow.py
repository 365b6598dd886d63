"""Follows the feed and prints every change. Ends with Ctrl-C, or after ROUNDS answers.

Needs PERENNIAL_URL, PERENNIAL_KEY (of scope read), and a file FEED_CURSOR for its position. Standard library only.
"""

import json
import os
import pathlib
import urllib.error
import urllib.parse
import urllib.request

url, key = os.environ["PERENNIAL_URL"], os.environ["PERENNIAL_KEY"]
kept = pathlib.Path(os.environ.get("FEED_CURSOR", "feed-cursor.json"))
rounds = int(os.environ.get("ROUNDS", "0"))
wait = os.environ.get("WAIT", "30")


def page(cursor):
    query = urllib.parse.urlencode({**cursor, "limit": 1000, "wait": wait})
    request = urllib.request.Request(f"{url}/v1/events?{query}", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


cursor = json.loads(kept.read_text()) if kept.exists() else {"after": 0}
count = 0
while rounds == 0 or count < rounds:
    count += 1
    try:
        answer = page(cursor)
    except urllib.error.HTTPError as problem:
        if problem.code == 409:
            raise SystemExit("The database was restored: read your mirror anew, then delete the cursor.") from problem
        raise
    for event in answer["events"]:
        # Make this step idempotent: after a crash, the events since the last cursor come again.
        print(event["position"], event["kind"], event["customer"], event["product_id"], event["occurred_at"], flush=True)
    cursor = {"after": answer["position"], "feed": answer["feed"]}
    kept.write_text(json.dumps(cursor))
