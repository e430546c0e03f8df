package engine

// spare is memory of heavy requests for the next ones. It is not a sync.Pool, which has memory for each
// processor, so that requests that are few and long often find none. The capacity of the channel is
// how much of it is kept.
type spare[T any] chan T

func (s spare[T]) take() (memory T, ok bool) {
	select {
	case memory = <-s:
		return memory, true
	default:
		return memory, false
	}
}

func (s spare[T]) put(memory T) {
	select {
	case s <- memory:
	default:
	}
}

// drop frees the memory.
func (s spare[T]) drop() {
	for range cap(s) {
		s.take()
	}
}
