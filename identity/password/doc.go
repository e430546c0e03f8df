// Package password hashes and verifies passwords, and decides which new passwords are
// acceptable.
//
// A password is stored only as its argon2id hash, in the PHC string format, so that the
// parameters can be raised later and hashes made by other systems verify as well:
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>
//
// A hash costs 19 MiB and about 20 ms by design. [Reserve] bounds the hashes in progress
// to half of the processors, so that a burst of sign-ins is queued instead of exhausting
// the memory. Verifying a password takes the same time whether or not the account exists,
// so response timing does not reveal accounts.
//
// A [Policy] refuses weak passwords by length, by a list of common passwords and by the
// identifiers of the user (OWASP ASVS 5.0 §6.2, NIST SP 800-63B §3.1.1.2). Package
// [stonetown/identity/password/breached] finds passwords that were part of a data breach.
package password
