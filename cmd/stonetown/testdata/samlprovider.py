"""A SAML identity provider with pysaml2, for browsers.

The first line of its input is its configuration in JSON: port, key, certificate, and users with their
attributes. It answers with its metadata in a line of JSON, and serves:

    POST /trust     the metadata of a service provider
    /sso            a page with a form for the name of the user
    POST /sign-in   a page that posts the response to the service provider
    /slo            single logout: signs a user out, or a page after the service provider has done so
    /leave?user=    begins single logout at the service provider
    /left           the names of the users whom the service provider has signed out
"""

import json
import logging
import sys
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, parse_qsl, urlsplit

from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT, entity
from saml2.authn_context import PASSWORD
from saml2.config import IdPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAME_FORMAT_URI, NAMEID_FORMAT_PERSISTENT, NameID
from saml2.samlp import STATUS_AUTHN_FAILED
from saml2.server import Server
from saml2.sigver import verify_redirect_signature
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

logging.disable(logging.CRITICAL)

# The default is triple DES.
entity.pre_encryption_part = partial(
    entity.pre_encryption_part, msg_enc="http://www.w3.org/2001/04/xmlenc#aes256-cbc")

settings = json.loads(sys.stdin.readline())
base = f"http://127.0.0.1:{settings['port']}"
trusted = []
left = []


def provider():
    services = [BINDING_HTTP_REDIRECT, BINDING_HTTP_POST]
    config = IdPConfig()
    config.load({
        "entityid": base + "/metadata",
        "key_file": settings["key"],
        "cert_file": settings["certificate"],
        "metadata": {"inline": trusted},
        "service": {"idp": {
            "signing_algorithm": SIG_RSA_SHA256,
            "digest_algorithm": DIGEST_SHA256,
            "endpoints": {"single_sign_on_service": [(base + "/sso", b) for b in services],
                          "single_logout_service": [(base + "/slo", BINDING_HTTP_REDIRECT)]},
            "name_id_format": [NAMEID_FORMAT_PERSISTENT],
            "policy": {"default": {"lifetime": {"minutes": 15}, "name_form": NAME_FORMAT_URI}},
        }},
    })
    server = Server(config=config)
    server.sec.encrypt_assertion = partial(server.sec.encrypt_assertion, key_type="aes-256")
    return server


def name_of(server, user, service):
    return NameID(text="id of " + user, format=NAMEID_FORMAT_PERSISTENT,
                  name_qualifier=server.config.entityid, sp_name_qualifier=service)


def verify_query(server, params, message):
    """Verifies the signature of the redirect binding."""
    [certificate] = server.metadata.certs(message.issuer.text, "any", "signing")
    if isinstance(certificate, tuple):
        certificate = certificate[1]
    if not verify_redirect_signature(params, server.sec.sec_backend, certificate):
        raise ValueError("the signature of the query is not valid")


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def page(self, text, status=200):
        body = ("<!doctype html><title>Partner</title><main><h1>Partner</h1>" + text).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers["Content-Length"])).decode()

    def do_GET(self):
        at = urlsplit(self.path)
        params = dict(parse_qsl(at.query))
        if at.path == "/sso":
            self.ask(params, BINDING_HTTP_REDIRECT)
        elif at.path == "/slo" and "SAMLRequest" in params:
            self.leave(params)
        elif at.path == "/slo":
            server = provider()
            verify_query(server, params, server.parse_logout_request_response(params["SAMLResponse"], BINDING_HTTP_REDIRECT).response)
            self.page("Signed out everywhere")
        elif at.path == "/leave":
            self.begin_leaving(params["user"])
        elif at.path == "/left":
            self.page(", ".join(left))
        else:
            self.page("Not found", 404)

    def redirect(self, http):
        self.send_response(303)
        self.send_header("Location", dict(http["headers"])["Location"])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def leave(self, params):
        """Verifies a request of single logout, and answers it."""
        server = provider()
        request = server.parse_logout_request(params["SAMLRequest"], BINDING_HTTP_REDIRECT).message
        verify_query(server, params, request)
        left.append(request.name_id.text)
        response = server.create_logout_response(request, [BINDING_HTTP_REDIRECT], sign=False)
        self.redirect(server.apply_binding(
            BINDING_HTTP_REDIRECT, str(response), response.destination, params["RelayState"], response=True, sign=True, sigalg=SIG_RSA_SHA256))

    def begin_leaving(self, user):
        """Begins single logout at the last service provider."""
        server = provider()
        [service] = [s for s in server.metadata.service_providers() if s.endswith("/partner/metadata")]
        to = server.metadata.single_logout_service(service, BINDING_HTTP_REDIRECT, "spsso")[0]["location"]
        _, request = server.create_logout_request(to, service, name_id=name_of(server, user, service), sign=False)
        self.redirect(server.apply_binding(BINDING_HTTP_REDIRECT, str(request), to, "leaving", sign=True, sigalg=SIG_RSA_SHA256))

    def do_POST(self):
        body = self.body()
        if self.path == "/trust":
            trusted.append(body)
            return self.page("Trusted")
        form = {name: values[0] for name, values in parse_qs(body).items()}
        if self.path == "/sso":
            return self.ask(form, BINDING_HTTP_POST)
        self.answer(form)

    def ask(self, params, binding):
        """Verifies a request, and asks for the user."""
        server = provider()
        request = server.parse_authn_request(params["SAMLRequest"], binding)
        if binding == BINDING_HTTP_REDIRECT:
            verify_query(server, params, request.message)
        elif not request.message.signature:
            raise ValueError("the request is not signed")
        hidden = "".join(f'<input type="hidden" name="{n}" value="{escape(v)}">' for n, v in {
            "request": params["SAMLRequest"], "binding": binding, "state": params["RelayState"]}.items())
        self.page(f'<form method="post" action="/sign-in">{hidden}<label>User <input name="user"></label>'
                  '<button>Sign in here</button> <button name="cancel" value="yes">Cancel</button></form>')

    def answer(self, form):
        server = provider()
        request = server.parse_authn_request(form["request"], form["binding"]).message
        args = server.response_args(request)
        if "cancel" in form:
            reason = (STATUS_AUTHN_FAILED, "Call +1 555 0100 now")
            response = server.create_error_response(args["in_response_to"], args["destination"], reason, sign=True)
        else:
            user = form["user"]
            response = server.create_authn_response(
                settings["users"][user], userid=user, name_id=name_of(server, user, request.issuer.text), authn={"class_ref": PASSWORD, "authn_auth": base},
                sign_assertion=True, sign_response=True, encrypt_assertion=True, sign_alg=SIG_RSA_SHA256, digest_alg=DIGEST_SHA256, **args)
        http = server.apply_binding(BINDING_HTTP_POST, str(response), args["destination"], form["state"], response=True)
        body = "".join(http["data"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


listener = HTTPServer(("127.0.0.1", settings["port"]), Handler)
print(json.dumps({"metadata": str(entity_descriptor(provider().config))}), flush=True)
listener.serve_forever()
