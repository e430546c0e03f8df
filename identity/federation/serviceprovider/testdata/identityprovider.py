"""An identity provider with pysaml2, for the tests.

It reads a line of JSON for each operation, and answers with a line of JSON. The first one is its
configuration, which it answers with its metadata.
"""

import json
import logging
import re
import sys
from functools import partial
from urllib.parse import parse_qsl, urlsplit

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


class Provider:
    def __init__(self, c):
        services = [BINDING_HTTP_REDIRECT, BINDING_HTTP_POST]
        config = IdPConfig()
        config.load({
            "entityid": c["entity"],
            "key_file": c["key"],
            "cert_file": c["certificate"],
            "metadata": {"local": [c["service_provider"]]},
            "service": {"idp": {
                "signing_algorithm": SIG_RSA_SHA256,
                "digest_algorithm": DIGEST_SHA256,
                "endpoints": {
                    "single_sign_on_service": [(c["sso"], b) for b in services],
                    "single_logout_service": [(c["slo"], b) for b in services],
                },
                "name_id_format": [NAMEID_FORMAT_PERSISTENT],
                "policy": {"default": {"lifetime": {"minutes": 15}, "name_form": NAME_FORMAT_URI}},
            }},
        })
        self.server = Server(config=config)
        security = self.server.sec
        security.encrypt_assertion = partial(security.encrypt_assertion, key_type="aes-256")
        self.sp = c["service_provider_entity"]
        self.slo = c["service_provider_slo"]

    def read(self, message):
        """Returns the parameters of a message and its binding, after verification."""
        if message["form"] is not None:
            return {k: v[0] for k, v in message["form"].items()}, BINDING_HTTP_POST
        params = dict(parse_qsl(urlsplit(message["url"]).query))
        [certificate] = self.server.metadata.certs(self.sp, "any", "signing")
        if isinstance(certificate, tuple):
            certificate = certificate[1]
        if not verify_redirect_signature(params, self.server.sec.sec_backend, certificate):
            raise ValueError("the signature of the query is not valid")
        return params, BINDING_HTTP_REDIRECT

    def sign_in(self, o):
        params, binding = self.read(o["message"])
        request = self.server.parse_authn_request(params["SAMLRequest"], binding)
        if binding == BINDING_HTTP_POST and not request.message.signature:
            raise ValueError("the request is not signed")
        args = self.server.response_args(request.message)
        name_id = NameID(text="ann", format=NAMEID_FORMAT_PERSISTENT, name_qualifier=self.server.config.entityid, sp_name_qualifier=self.sp)
        response = self.server.create_authn_response(
            {"mail": "ann@example.com", "eduPersonEntitlement": ["staff", "R&D <ops>"]}, userid="ann", name_id=name_id,
            authn={"class_ref": PASSWORD, "authn_auth": "x"},
            sign_assertion=o["sign_assertion"], sign_response=o["sign_response"], encrypt_assertion=o["encrypt"],
            sign_alg=SIG_RSA_SHA256, digest_alg=DIGEST_SHA256, **args)
        return self.send(BINDING_HTTP_POST, response, args["destination"], params["RelayState"], True)

    def refuse(self, o):
        params, binding = self.read(o["message"])
        request = self.server.parse_authn_request(params["SAMLRequest"], binding)
        args = self.server.response_args(request.message)
        reason = (STATUS_AUTHN_FAILED, "the user canceled")
        response = self.server.create_error_response(args["in_response_to"], args["destination"], reason, sign=True)
        return self.send(BINDING_HTTP_POST, response, args["destination"], params["RelayState"], True)

    def answer_logout(self, o):
        params, binding = self.read(o["message"])
        request = self.server.parse_logout_request(params["SAMLRequest"], binding)
        if binding == BINDING_HTTP_POST and not request.message.signature:
            raise ValueError("the request is not signed")
        response = self.server.create_logout_response(request.message, [binding], sign=binding == BINDING_HTTP_POST)
        answer = self.send(binding, response, self.slo, params["RelayState"], True)
        answer["name"] = request.message.name_id.text
        answer["sessions"] = [s.text for s in request.message.session_index]
        return answer

    def begin_logout(self, o):
        n = o["subject"]
        name_id = NameID(text=n["value"], format=n["format"], name_qualifier=n["name_qualifier"], sp_name_qualifier=n["sp_name_qualifier"])
        post = o["binding"] == BINDING_HTTP_POST
        self.id, request = self.server.create_logout_request(self.slo, self.sp, name_id=name_id, session_indexes=[o["session"]], sign=post)
        return self.send(o["binding"], request, self.slo, "state", False)

    def finish_logout(self, o):
        params, binding = self.read(o["message"])
        response = self.server.parse_logout_request_response(params["SAMLResponse"], binding)
        return {"ok": response.status_ok() and response.response.in_response_to == self.id, "relay_state": params["RelayState"]}

    def send(self, binding, message, to, relay_state, response):
        http = self.server.apply_binding(binding, str(message), to, relay_state, response=response, sign=binding == BINDING_HTTP_REDIRECT)
        if binding == BINDING_HTTP_REDIRECT:
            return {"message": {"url": dict(http["headers"])["Location"], "form": None}}
        fields = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', "".join(http["data"])))
        return {"message": {"url": to, "form": {k: [v] for k, v in fields.items()}}}


provider = None
for line in sys.stdin:
    operation = json.loads(line)
    if provider is None:
        provider = Provider(operation)
        answer = {"metadata": str(entity_descriptor(provider.server.config))}
    else:
        answer = getattr(provider, operation["operation"])(operation)
    print(json.dumps(answer), flush=True)
