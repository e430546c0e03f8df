//go:build race

package main

// The race detector makes a program several times slower and larger.
func init() {
	*overloadConnections = 50
	overloadMiB *= 8
}
