package main

import (
	"os"

	"stonetown/internal/fair"
)

// ballastSize is how much memory a server allocates and never touches, so that it takes
// address space only. The garbage collector counts it, and so it starts when that much
// has been allocated anew, instead of after every second password that is hashed (19 MiB
// each).
const ballastSize = 256 << 20

// tune sets up the runtime of a server. What the environment of the process says about
// the runtime is left as it is. The server keeps the ballast, if there is one, for as
// long as it runs.
func tune() (ballast []byte) {
	_, percent := os.LookupEnv("GOGC")
	_, limit := os.LookupEnv("GOMEMLIMIT")
	if !percent && !limit {
		ballast = make([]byte, ballastSize)
	}
	if _, processors := os.LookupEnv("GOMAXPROCS"); !processors {
		fair.AddProcessors(2) // passwords and complex questions
	}
	return ballast
}
