// The one thing on these pages that takes a script: passkeys. Everything is asked of the
// public operations under /api/v1, with the cookie of the browser's session.
"use strict";

const supported = window.PublicKeyCredential?.parseRequestOptionsFromJSON !== undefined;
const problem = document.getElementById("problem");

function say(text) {
  problem.textContent = text;
  problem.hidden = false;
}

// ask calls an operation; what it refuses is an error with its code.
async function ask(path, body) {
  const response = await fetch("/api/v1/" + path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.message), { code: answer.error, details: answer.details });
  return answer.data;
}

async function get(options, more) {
  const credential = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options), ...more });
  return credential.toJSON();
}

// proceed goes where a sign-in leads.
function proceed(result, next) {
  const to = { complete: next, mfa_enrolment_required: "/account/security?done=enrol", email_verification_required: "/auth/verify-email" }[result.status];
  location.assign(to ?? "/auth/sign-in");
}

const actions = {
  async "sign-in"(button) {
    waiting?.abort();
    const begun = await ask("auth/webauthn/begin", {});
    proceed(await ask("auth/webauthn/complete", { ceremony_id: begun.ceremony_id, credential: await get(begun.public_key) }), button.dataset.next);
  },
  async mfa(button) {
    const begun = await ask("auth/mfa/challenge", { mfa_token: button.dataset.token, kind: "webauthn" });
    const credential = await get(begun.public_key);
    proceed(await ask("auth/mfa/verify", { mfa_token: button.dataset.token, kind: "webauthn", challenge_id: begun.challenge_id, credential }), button.dataset.next);
  },
  async "step-up"(button) {
    const begun = await ask("auth/step-up/begin", { kind: "webauthn" });
    const credential = await get(begun.public_key);
    await ask("auth/step-up/complete", { kind: "webauthn", challenge_id: begun.challenge_id, credential });
    location.assign(button.dataset.next);
  },
  async add(button) {
    const label = document.getElementById("label").value;
    const begun = await ask("me/mfa/factors/webauthn/begin", { label });
    const made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(begun.public_key) });
    await ask("me/mfa/factors/webauthn/complete", { ceremony_id: begun.ceremony_id, credential: made.toJSON() });
    location.assign(button.dataset.next);
  },
};

// explain says what went wrong, or leads to where it can be mended.
function explain(error) {
  if (error.name === "AbortError") return;
  if (error.code === "insufficient_user_authentication") {
    location.assign(error.details.enrolment_required ? "/auth/sign-in?next=/account/passkey" : "/account/step-up?next=/account/passkey");
  } else if (error.code === "unauthenticated" || error.code === "invalid_token") {
    location.assign("/auth/sign-in?next=" + encodeURIComponent(location.pathname));
  } else if (error.name === "NotAllowedError") {
    say("No passkey was used. You can try again.");
  } else if (error.name === "InvalidStateError") {
    say("This device has a passkey for your account already.");
  } else {
    say({ credential_invalid: "That passkey was not accepted.", rate_limited: "That was too often. Please wait a little.", user_disabled: "This account is disabled.",
      ceremony_invalid: "That took too long. Please try again." }[error.code] ?? "Something went wrong. Please try again.");
  }
}

let waiting; // the request that waits for a passkey to be picked where the name is typed

async function offer(form) {
  if (!await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
  const begun = await ask("auth/webauthn/begin", {});
  waiting = new AbortController();
  const credential = await get(begun.public_key, { mediation: "conditional", signal: waiting.signal });
  proceed(await ask("auth/webauthn/complete", { ceremony_id: begun.ceremony_id, credential }), form.dataset.next);
}

if (supported) {
  for (const button of document.querySelectorAll("[data-passkey]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      problem.hidden = true;
      button.disabled = true;
      try {
        await actions[button.dataset.passkey](button);
      } catch (error) {
        explain(error);
      } finally {
        button.disabled = false;
      }
    });
  }
  const form = document.querySelector("[data-autofill]");
  if (form) offer(form).catch(explain);
}
