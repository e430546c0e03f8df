// Package bench measures the product under documented workloads. It compares every answer
// with the generator's own oracle: a wrong answer is an error, not a figure.
//
// A [Workload] is tuples and questions with known answers: [Docs], a shared drive, and
// [Shapes], each of which is expensive in one way. A [Target] is a way to call an engine:
// in process, over HTTP, or the API of another engine. [Run] loads workloads into targets
// and returns a [Report] of latencies and rates. Its floor, an echo of the same HTTP
// requests, is measured in the same run. Figures of different machines or runs are not
// comparable; ratios within one run are.
package bench
