"""Places an order, sends the receipt that the device brings after the payment, and says how the purchase stands.

Needs PERENNIAL_URL, PERENNIAL_KEY (of scope write), APP, CUSTOMER and PRODUCT. It prints what the device gets, then waits
for a line with the device's receipt in Base64, unless the order is paid or delivered already. examples/credit.py carries
out what was bought. Standard library only.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

url, key, app = os.environ["PERENNIAL_URL"], os.environ["PERENNIAL_KEY"], os.environ["APP"]
customer, product, quantity = os.environ["CUSTOMER"], os.environ["PRODUCT"], int(os.environ.get("QUANTITY", "1"))


def call(path, body=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"{url}/v1/apps/{app}/{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        # A receipt that Apple refuses is a problem (422) with the same fields as an answer.
        if problem.code == 422:
            return json.load(problem)
        sys.exit(f"{problem.code}: {problem.read().decode()}")


# Keep the key of the request with the tap, before the call: a repetition with the same one gets the same order.
tap = str(uuid.uuid4())
wish = {"customer": customer, "product_id": product, "quantity": quantity}
order = call("orders", wish, Idempotency_Key=tap)
print("for the device:", json.dumps({name: order[name] for name in ("order_id", "key", "app_account_token")}), flush=True)

# What was bought just before, or is owned already, pays the order as it is placed: then there is nothing to buy.
if order["state"] == "created":
    receipt = sys.stdin.readline().strip()
    upload = {"customer": customer, "receipt": receipt, "purpose": "purchase", "order": order["order_id"]}
    for _ in range(10):
        answer = call("receipts", upload)
        # The device may finish what is stored, whatever else the answer says.
        print(answer["result"], answer["advice"], "may finish", answer["may_finish"], flush=True)
        if answer["advice"] != "retry":
            break
        time.sleep(answer["retry_after_s"] or 1)
order = call(f"orders/{order['order_id']}")
print("order", order["state"], "deliveries", order["delivery_ids"])
