// A service provider with node-saml, for the tests. It reads a line of JSON for each operation, and
// answers with a line of JSON. The first one is its configuration.

import { createInterface } from "node:readline";
import { SAML } from "@node-saml/node-saml";

const operations = {
  begin: async (saml, o) => {
    if (o.post) {
      saml.options.skipRequestCompression = true; // only the redirect binding has compression
      const fields = await saml.getAuthorizeMessageAsync("state");
      saml.options.skipRequestCompression = false;
      return { message: { url: saml.options.entryPoint, form: Object.fromEntries(Object.entries(fields).map(([k, v]) => [k, [v]])) } };
    }
    return { message: { url: await saml.getAuthorizeUrlAsync("state", "", {}), form: null } };
  },
  finish: async (saml, o) => {
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: o.message.form.SAMLResponse[0] });
    return { profile, relay_state: o.message.form.RelayState?.[0] };
  },
  begin_logout: async (saml, o) => ({ message: { url: await saml.getLogoutUrlAsync(o.profile, "state", {}), form: null } }),
  finish_logout: async (saml, o) => {
    const query = new URL(o.message.url).search.slice(1);
    const { loggedOut } = await saml.validateRedirectAsync(Object.fromEntries(new URLSearchParams(query)), query);
    return { logged_out: loggedOut };
  },
  answer_logout: async (saml, o) => {
    const query = new URL(o.message.url).search.slice(1);
    const params = Object.fromEntries(new URLSearchParams(query));
    const { profile } = await saml.validateRedirectAsync(params, query);
    return { profile, message: { url: await saml.getLogoutResponseUrlAsync(profile, params.RelayState, {}, true), form: null } };
  },
};

let saml;
for await (const line of createInterface({ input: process.stdin })) {
  const o = JSON.parse(line);
  let answer = {};
  try {
    if (saml) answer = await operations[o.operation](saml, o);
    else saml = new SAML(o);
  } catch (e) {
    answer = { error: String(e.stack) };
  }
  console.log(JSON.stringify(answer));
}
