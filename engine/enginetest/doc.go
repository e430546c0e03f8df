// Package enginetest shows that the engine answers right.
//
// testdata holds cases that a person can read and add to: a schema, tuples,
// questions and the expected answers, run on every backend, resident and cold,
// and held against the oracle too. The notation is that of [ParseSchema].
//
// Beyond what people think of, random schemas with every kind of rewrite,
// random tuples, writes and deletes are answered by the engine and by a naive
// [Oracle], while writers write: each answer names the revision it reflects,
// and must be what the oracle says of that very revision, and no check may
// reflect less than what was acknowledged before it began.
package enginetest
