"""Makes the proof that a message of a device is about an order.

    ORDER_KEY=… proof.py receipt ORDER RECEIPT      RECEIPT is Base64, as the device sends it
    ORDER_KEY=… proof.py state ORDER STATE [CODE]

ORDER_KEY is the order's `key`: Base64 of 32 bytes, which are the key of the HMAC; the text itself is not. Standard library
only.
"""

import base64
import hashlib
import hmac
import os
import sys


def proof(key, order, about):
    return hmac.new(base64.b64decode(key), f"{order}.{about}".encode(), hashlib.sha256).hexdigest()


def of_receipt(key, order, receipt):
    return proof(key, order, hashlib.sha256(base64.b64decode(receipt)).hexdigest())


def of_state(key, order, state, code=""):
    return proof(key, order, f"{state}.{code}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["receipt", order, receipt]:
            print(of_receipt(os.environ["ORDER_KEY"], order, receipt))
        case ["state", order, state, *code]:
            print(of_state(os.environ["ORDER_KEY"], order, state, *code))
        case _:
            sys.exit(__doc__)
