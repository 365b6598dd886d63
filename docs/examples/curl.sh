#!/usr/bin/env bash
# Sends a receipt, requests the entitlements of its customer, and reads the feed from its start.
# Needs PERENNIAL_URL (such as http://127.0.0.1:8080), PERENNIAL_KEY (of scope write), APP, CUSTOMER, and a RECEIPT in
# Base64.
set -euo pipefail

api() { curl --silent --show-error --fail-with-body --header "Authorization: Bearer $PERENNIAL_KEY" "$@"; }
send() { api --header 'Content-Type: application/json' --data "$@"; }

echo "The receipt:"
send "{\"customer\": \"$CUSTOMER\", \"receipt\": \"$RECEIPT\"}" "$PERENNIAL_URL/v1/apps/$APP/receipts"
echo

echo "The customer's entitlements:"
api "$PERENNIAL_URL/v1/apps/$APP/customers/$CUSTOMER/entitlements"
echo

echo "The entitlements of several customers:"
send "{\"customers\": [\"$CUSTOMER\", \"stranger\"]}" "$PERENNIAL_URL/v1/apps/$APP/entitlements:batch"
echo

echo "The changes:"
api "$PERENNIAL_URL/v1/events?after=0&limit=100"
echo
