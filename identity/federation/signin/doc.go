// Package signin signs users in at federation connections: from the button on a page to the session,
// and from a test of a connection to its report.
//
//	Begin     the URL of the provider to which the browser is sent, and a secret that the browser
//	          keeps in a cookie
//	Complete  the answer of the provider, with the secret: the result of the sign-in
//
// Between the two, the database keeps a sealed one-time token ([onetime]) with what the answer must
// match: the connection, state, nonce and code verifier (RelayState and the ID of the request for
// SAML), and the destination of the user. The secret of that token is known to the browser only, so
// nobody can make a browser complete the sign-in of another one (RFC 9700 §4.7), and nothing is stored
// for a browser that never returns.
//
// The same two steps serve three purposes:
//
//	sign-in  package authn finds, links or creates the account, and continues with its next step
//	link     a user who is signed in adds the identity to the account
//	test     an administrator sees what the provider sends ([Report]); there is no session
//
// The connection must be enabled in both steps, except for a test.
//
// At a SAML identity provider, the answer must be for the request, and its assertion is recorded until
// it expires, so that it is accepted once. A connection can allow sign-ins that the identity provider
// begins: these have no first step, and are neither links nor tests.
package signin
