package fair

import "runtime"

// processors is how many of them the program may use, before [AddProcessors].
var processors = runtime.GOMAXPROCS(0)

// HeavyPlaces is how many requests may do heavy work of one kind at the same time: half
// of the processors, at least one, so that light requests always find another.
func HeavyPlaces() int { return max(1, processors/2) }

// AddProcessors lets the runtime run so many more goroutines at the same time as there
// are places for kinds of heavy work. Go lets a goroutine compute for 10 ms before
// another one takes its turn, and a light request needs a fraction of that. With threads
// to spare, the kernel divides the processors between both, in shorter turns.
//
// From then on the runtime does not follow changes of the processor limit of a container.
func AddProcessors(kinds int) { runtime.GOMAXPROCS(processors + kinds*HeavyPlaces()) }
