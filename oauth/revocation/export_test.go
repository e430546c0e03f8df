package revocation

// Known returns the number of revocations in memory.
func (f *Feed) Known() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.known)
}
