// Package bench measures the product under a documented workload and compares
// every answer with the generator's own oracle: a fast wrong answer is an error,
// not a figure.
//
// [Docs] is the workload. A [Target] is a way to reach an engine: in process or
// over HTTP. [Run] loads the one through the other and returns a [Report] of
// latencies and rates, with the floor of the machine (an echo over the same
// HTTP) measured in the same run. Figures of different machines or runs are not
// comparable; ratios within one run are.
package bench
