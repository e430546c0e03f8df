// Package bench measures the product under a documented workload and compares
// every answer with the generator's own oracle: a fast wrong answer is an error,
// not a figure.
//
// A [Workload] is tuples and questions with known answers: [Docs], a shared drive,
// and [Shapes] that are hard on an engine in one way each. A [Target] is a way to
// reach an engine: in process, over HTTP, or another engine's. [Run] loads the one
// through the other and returns a [Report] of latencies and rates, with the floor of
// the machine (an echo of the same HTTP requests) measured in the same run. Figures
// of different machines or runs are not comparable; ratios within one run are.
package bench
