// Package enginetest tests that the engine's answers are correct.
//
// testdata has cases in a readable notation (see [ParseSchema]): a schema, tuples,
// questions and the expected answers. They run on every backend, resident and cold, and are
// also compared with the oracle.
//
// Random tests compare the engine with a naive [Oracle], on random schemas with every kind
// of rewrite, random tuples and questions, also during writes. Each answer names the
// revision that it reflects and must equal the oracle's answer at that revision. A check
// must reflect every write that was acknowledged before it began.
package enginetest
