package main

import (
	"os"

	"stonetown/internal/fair"
)

// ballastSize is the size of memory that a server allocates and never touches, so that it takes
// address space only. The garbage collector counts it, and therefore starts when that much more
// is allocated, instead of after every second password hash (19 MiB each).
const ballastSize = 256 << 20

// tune configures the runtime of a server. Settings of the runtime in the environment take
// precedence. The server keeps the ballast, if there is one, while it runs.
func tune() (ballast []byte) {
	_, percent := os.LookupEnv("GOGC")
	_, limit := os.LookupEnv("GOMEMLIMIT")
	if !percent && !limit {
		ballast = make([]byte, ballastSize)
	}
	if _, processors := os.LookupEnv("GOMAXPROCS"); !processors {
		fair.AddProcessors(2) // for password hashing and heavy requests
	}
	return ballast
}
