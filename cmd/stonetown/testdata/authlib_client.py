"""The server as Authlib sees it: a website with PKCE, a robot that authenticates by a key.

SETUP has the issuer, a person, the applications and the private key of the robot, as JSON."""

import json
import os
import socket

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oidc.core import CodeIDToken

setup = json.loads(os.environ["SETUP"])
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "true"  # the issuer is on this machine

# The names of development hosts are of this machine (RFC 6761 §6.3), which glibc does not know.
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: resolve("127.0.0.1" if host.endswith(".localhost") else host, *more, **named)

issuer = setup["issuer"]
server = requests.get(issuer + "/.well-known/openid-configuration").json()
keys = JsonWebKey.import_key_set(requests.get(server["jwks_uri"]).json())
signed_in = requests.post(issuer + "/api/v1/auth/sign-in", json={"email": setup["email"], "password": setup["password"]})
cookies = {"__Host-sid": signed_in.json()["data"]["session_token"]}


def authorize(session, **parameters):
    """Returns the address at which the browser of the person arrives."""
    url, state = session.create_authorization_url(server["authorization_endpoint"], **parameters)
    answer = requests.get(url, headers={"Cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())}, allow_redirects=False)
    assert answer.status_code in (302, 303), answer.text
    return answer.headers["Location"], state


def claims_of(token, client_id, nonce):
    claims = jwt.decode(
        token["id_token"], keys, claims_cls=CodeIDToken,
        claims_options={"iss": {"value": issuer}, "aud": {"value": client_id}}, claims_params={"nonce": nonce, "client_id": client_id},
    )
    claims.validate(leeway=10)
    return claims


website = setup["applications"]["website"]
back = website["redirect_uris"][0]
verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
session = OAuth2Session(website["client_id"], website["client_secret"], scope="openid email offline_access", redirect_uri=back, code_challenge_method="S256",
                        token_endpoint_auth_method="client_secret_basic")
at, state = authorize(session, code_verifier=verifier, nonce="n-1")
token = session.fetch_token(server["token_endpoint"], authorization_response=at, state=state, code_verifier=verifier)
claims = claims_of(token, website["client_id"], "n-1")
assert claims["email"] == setup["email"], claims
assert session.get(server["userinfo_endpoint"]).json()["email"] == setup["email"]
print("ok code, PKCE, ID token, UserInfo")

renewed = session.refresh_token(server["token_endpoint"], token["refresh_token"])
assert renewed["access_token"] != token["access_token"]
assert session.introspect_token(server["introspection_endpoint"], token=renewed["access_token"]).json()["active"] is True
assert session.revoke_token(server["revocation_endpoint"], token=renewed["refresh_token"]).status_code == 200
assert session.introspect_token(server["introspection_endpoint"], token=renewed["access_token"]).json()["active"] is False
print("ok refresh, introspection, revocation")

robot = setup["applications"]["robot"]
method = PrivateKeyJWT(server["token_endpoint"], headers={"kid": "key-1"}, alg="ES256")
machine = OAuth2Session(robot["client_id"], JsonWebKey.import_key(setup["key"]), token_endpoint_auth_method=method, scope="resources:read")
machine.register_client_auth_method(method)
granted = machine.fetch_token(server["token_endpoint"], grant_type="client_credentials")
access = jwt.decode(granted["access_token"], keys)
assert access["sub"] == robot["client_id"] and access["iss"] == issuer, access
print("ok client credentials with private_key_jwt")
