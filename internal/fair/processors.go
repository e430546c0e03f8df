package fair

import "runtime"

// processors is how many of them the program may use, before [AddProcessors].
var processors = runtime.GOMAXPROCS(0)

// HeavyPlaces is how many requests may do heavy work of one kind at the same time: half
// of the processors, at least one, so that light requests always find another.
func HeavyPlaces() int { return max(1, processors/2) }

// more is how many threads there are for calls that hold one without being heavy: commits and the
// garbage collector.
const more = 2

// AddProcessors raises GOMAXPROCS by the number of places for heavy work, and a few. Go preempts a
// goroutine after 10 ms, and a light request takes a fraction of that. With more threads than
// processors, the kernel divides the processors between both, in shorter slices.
//
// From then on the runtime does not follow changes of the processor limit of a container.
func AddProcessors(kinds int) { runtime.GOMAXPROCS(processors + kinds*HeavyPlaces() + more) }
