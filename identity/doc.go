// Package identity keeps the people of a tenant: their accounts and passwords.
//
// An account belongs to one tenant and is found there by its e-mail address,
// compared without regard to case. It is pending until its address is verified,
// then active, and disabled while an administrator says so. What a user may do is
// relations in the engine; an account that is deleted takes them along.
//
// Groups are rows with a name; who is in one and which scopes it brings are relations
// in the engine and only there, and a change of either is one write of the engine's,
// whose transaction the rows join. Changes of who administers the tenant are made in
// line by the lock that orders its relations, so that the last one stays.
//
// Whatever changes a user or a group writes the events of the change in its transaction.
// Their data is the public representation, [UserDocument] or [GroupDocument], which the
// API answers as well, and their origin is that of the context ([eventlog.WithOrigin]).
// What other modules keep about a user is theirs: they join the deletion of the user by
// [Config].OnDelete.
//
// Many users come by an [Importer]: rows wait in the database, encrypted, and each
// chunk of them is imported in one transaction with the counters of its job.
//
// A password is kept only as its argon2id hash, in the PHC string format, so that
// parameters can be raised later without invalidating what is stored; an imported one
// as the hash that the other system made:
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>
//
// A hash costs 19 MiB and some 20 ms by design. No more than one per CPU is
// computed at a time, so that a burst of sign-ins queues instead of taking the
// machine's memory. Checking a password takes this long whether or not the
// account exists: the time of an answer does not tell who has an account.
package identity
