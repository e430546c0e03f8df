"""Verifies deliveries with hmac, in both forms, as the contract of receivers describes them."""

import base64, hashlib, hmac, json, sys

deliveries = json.load(sys.stdin)
assert deliveries
for delivery in deliveries:
    headers, secret, body = delivery["headers"], delivery["secret"], delivery["body"].encode()
    if delivery["expired"]:
        continue  # the signature is valid; this script does not check the time
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    mac = hmac.new(base64.b64decode(secret[len("whsec_") :]), signed, hashlib.sha256)
    standard = "v1," + base64.b64encode(mac.digest()).decode() in headers["webhook-signature"].split(" ")
    service = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() in (
        headers["x-service-signature"],
        headers.get("x-service-signature-previous"),
    )
    assert (standard, service) == (delivery["valid"], delivery["valid"]), (delivery["name"], standard, service)
print(len(deliveries), "deliveries")
