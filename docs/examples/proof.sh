#!/usr/bin/env bash
# Makes the proof that a message of a device is about an order, with OpenSSL and coreutils:
#   ORDER_KEY=… proof.sh receipt ORDER RECEIPT      RECEIPT is Base64, as the device sends it
#   ORDER_KEY=… proof.sh state ORDER STATE [CODE]
# ORDER_KEY is the order's `key`: Base64 of 32 bytes, which are the key of the HMAC; the text itself is not.
set -euo pipefail

case "${1:-} $#" in
    "receipt 3") about=$(printf %s "$3" | base64 -d | sha256sum | cut -d ' ' -f 1) ;;
    "state 3" | "state 4") about=$3.${4:-} ;;
    *) sed -n '2,5s/^# *//p' "$0" >&2 && exit 64 ;;
esac
key=$(printf %s "$ORDER_KEY" | base64 -d | od -An -v -tx1 | tr -d ' \n')
printf '%s.%s' "$2" "$about" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -r | cut -d ' ' -f 1
