// Passkeys are the one thing on these pages that needs a script. It asks the public operations
// under /api/v1 for options, has the browser use or make a passkey, and posts the answer with
// the page's own form.
"use strict";

const supported = window.PublicKeyCredential?.parseRequestOptionsFromJSON !== undefined;
const problem = document.getElementById("problem");
const texts = document.currentScript.dataset; // in the language of the page

function say(text) {
  problem.textContent = text;
  problem.hidden = false;
}

// ask calls an operation. A refusal is an error with its code.
async function ask(path, body) {
  const response = await fetch("/api/v1/" + path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.message), { code: answer.error });
  return answer.data;
}

function get(options, more) {
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options), ...more });
}

// submit posts a form with what the browser answered.
function submit(form, credential, fields) {
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  form.submit();
}

const actions = {
  async "sign-in"(form) {
    waiting?.abort();
    const begun = await ask("auth/webauthn/begin", {});
    submit(form, await get(begun.public_key), { ceremony_id: begun.ceremony_id });
  },
  async mfa(form) {
    const begun = await ask("auth/mfa/challenge", { mfa_token: form.dataset.token, kind: "webauthn" });
    submit(form, await get(begun.public_key), { challenge_id: begun.challenge_id });
  },
  async "step-up"(form) {
    const begun = await ask("auth/step-up/begin", { kind: "webauthn" });
    submit(form, await get(begun.public_key), { challenge_id: begun.challenge_id });
  },
  async add(form) {
    const options = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(form.dataset.options));
    submit(form, await navigator.credentials.create({ publicKey: options }), {});
  },
};

// explain says what went wrong.
function explain(error) {
  if (error.name === "AbortError") return;
  if (error.name === "NotAllowedError") {
    say(texts.unused);
  } else if (error.name === "InvalidStateError") {
    say(texts.exists);
  } else if (error.code === "unauthenticated" || error.code === "invalid_token" || error.code === "ceremony_invalid") {
    location.reload(); // the page knows the way
  } else {
    say(error.code === "rate_limited" ? texts.limited : texts.failed);
  }
}

let waiting; // the request that waits for a passkey to be picked where the name is typed

async function offer(form) {
  if (!await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
  waiting = new AbortController();
  const begun = await ask("auth/webauthn/begin", {});
  submit(form, await get(begun.public_key, { mediation: "conditional", signal: waiting.signal }), { ceremony_id: begun.ceremony_id });
}

if (supported) {
  for (const form of document.querySelectorAll("[data-passkey]")) {
    const button = form.querySelector("button");
    button.hidden = false;
    form.addEventListener("submit", async event => {
      event.preventDefault();
      problem.hidden = true;
      button.disabled = true;
      try {
        await actions[form.dataset.passkey](form);
      } catch (error) {
        explain(error);
      } finally {
        button.disabled = false;
      }
    });
    // Nobody has asked for the offer, so nobody hears that it cannot be made.
    if (form.dataset.autofill !== undefined) offer(form).catch(() => {});
  }
}
