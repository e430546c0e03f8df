"""A service provider with pysaml2, for the tests.

It reads a line of JSON for each operation, and answers with a line of JSON. The first one is its
configuration, which it answers with its metadata.
"""

import json
import logging
import re
import sys
from urllib.parse import parse_qsl, urlsplit

from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.client import Saml2Client
from saml2.config import SPConfig
from saml2.metadata import entity_descriptor
from saml2.response import StatusError
from saml2.saml import NAMEID_FORMAT_PERSISTENT, AuthnContextClassRef, NameID
from saml2.samlp import RequestedAuthnContext
from saml2.sigver import verify_redirect_signature
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

logging.disable(logging.CRITICAL)


class Provider:
    def __init__(self, c):
        services = [BINDING_HTTP_REDIRECT, BINDING_HTTP_POST]
        config = SPConfig()
        config.load({
            "entityid": c["entity"],
            "key_file": c["key"],
            "cert_file": c["certificate"],
            "encryption_keypairs": [{"key_file": c["key"], "cert_file": c["certificate"]}],
            "metadata": {"local": [c["identity_provider"]]},
            "allow_unknown_attributes": True,
            "service": {"sp": {
                "signing_algorithm": SIG_RSA_SHA256,
                "digest_algorithm": DIGEST_SHA256,
                "authn_requests_signed": True,
                "logout_requests_signed": True,
                "want_assertions_signed": c["want_assertion_signed"],
                "want_response_signed": c["want_response_signed"],
                "endpoints": {
                    "assertion_consumer_service": [(c["acs"], BINDING_HTTP_POST)],
                    "single_logout_service": [(c["slo"], b) for b in services],
                },
                "name_id_format": [NAMEID_FORMAT_PERSISTENT],
            }},
        })
        self.client = Saml2Client(config=config)
        self.idp = c["identity_provider_entity"]
        self.slo = c["identity_provider_slo"]

    def read(self, message):
        """Returns the parameters of a message and its binding, after verification."""
        if message["form"] is not None:
            return {k: v[0] for k, v in message["form"].items()}, BINDING_HTTP_POST
        params = dict(parse_qsl(urlsplit(message["url"]).query))
        [certificate] = self.client.metadata.certs(self.idp, "any", "signing")
        if isinstance(certificate, tuple):
            certificate = certificate[1]
        if not verify_redirect_signature(params, self.client.sec.sec_backend, certificate):
            raise ValueError("the signature of the query is not valid")
        return params, BINDING_HTTP_REDIRECT

    def begin(self, o):
        self.id, binding, http = self.client.prepare_for_negotiated_authenticate(
            entityid=self.idp, relay_state="state", binding=o["binding"], force_authn="true",
            requested_authn_context=RequestedAuthnContext(authn_context_class_ref=[AuthnContextClassRef(text=o["context"])], comparison="minimum"))
        return {"message": self.message(binding, http)}

    def finish(self, o):
        params, binding = self.read(o["message"])
        try:
            response = self.client.parse_authn_request_response(params["SAMLResponse"], binding, outstanding={self.id: "/"})
        except StatusError as e:
            return {"status": type(e).__name__}
        [statement] = response.assertion.authn_statement
        return {
            "name": response.name_id.text, "format": response.name_id.format, "attributes": response.ava,
            "session": statement.session_index, "context": statement.authn_context.authn_context_class_ref.text,
            "relay_state": params["RelayState"],
        }

    def begin_logout(self, o):
        n = o["subject"]
        name_id = NameID(text=n["value"], format=n["format"], name_qualifier=n["name_qualifier"], sp_name_qualifier=n["sp_name_qualifier"])
        post = o["binding"] == BINDING_HTTP_POST
        self.id, request = self.client.create_logout_request(self.slo, self.idp, name_id=name_id, session_indexes=[o["session"]], sign=post)
        return {"message": self.send(o["binding"], request, "state", False)}

    def finish_logout(self, o):
        params, binding = self.read(o["message"])
        response = self.client.parse_logout_request_response(params["SAMLResponse"], binding)
        return {"ok": response.status_ok() and response.response.in_response_to == self.id, "relay_state": params["RelayState"]}

    def answer_logout(self, o):
        params, binding = self.read(o["message"])
        request = self.client.parse_logout_request(params["SAMLRequest"], binding)
        response = self.client.create_logout_response(request.message, [binding], sign=binding == BINDING_HTTP_POST)
        return {
            "message": self.send(binding, response, params["RelayState"], True),
            "name": request.message.name_id.text, "sessions": [s.text for s in request.message.session_index],
        }

    def send(self, binding, message, relay_state, response):
        http = self.client.apply_binding(binding, str(message), self.slo, relay_state, response=response, sign=binding == BINDING_HTTP_REDIRECT)
        return self.message(binding, http)

    def message(self, binding, http):
        if binding == BINDING_HTTP_REDIRECT:
            return {"url": dict(http["headers"])["Location"], "form": None}
        fields = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', "".join(http["data"])))
        return {"url": http["url"], "form": {k: [v] for k, v in fields.items()}}


provider = None
for line in sys.stdin:
    operation = json.loads(line)
    if provider is None:
        provider = Provider(operation)
        answer = {"metadata": str(entity_descriptor(provider.client.config))}
    else:
        answer = getattr(provider, operation["operation"])(operation)
    print(json.dumps(answer), flush=True)
