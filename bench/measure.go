package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"stonetown/tuplestore"
)

// Figure is one measurement. If Rate is 0 it is a closed loop: each worker makes its next
// call when the last has returned, which measures the throughput. Latencies are then those
// of calls without a queue. With a rate, calls are due at times independent of earlier calls, and
// latencies count from the time at which a call was due, without coordinated omission. Each worker
// has one call in each interval, at a random time: with fixed times, calls of different meters
// would be due together, again and again or never.
type Figure struct {
	Target   string `json:"target"`
	Workload string `json:"workload"`
	Measure  string `json:"measure"`
	Workers  int    `json:"workers"`
	// Rate is the number of calls of all workers that were due per second.
	Rate float64 `json:"rate,omitempty"`
	// PerCall is the number of units (checks, tuples) of one call.
	PerCall   int     `json:"per_call"`
	Calls     int64   `json:"calls"`
	PerSecond float64 `json:"per_second"` // units
	// Latencies of a call, in microseconds; zero if not measured.
	P50  float64 `json:"p50_us,omitempty"`
	P90  float64 `json:"p90_us,omitempty"`
	P99  float64 `json:"p99_us,omitempty"`
	P999 float64 `json:"p999_us,omitempty"`
	// Reads is how often an engine in process read from the database for 1,000 units.
	Reads float64 `json:"reads,omitempty"`
	// Failed is the error of another engine; the other fields are then meaningless.
	Failed string `json:"failed,omitempty"`
}

// meter measures a figure, in one run or in several.
type meter struct {
	figure    Figure
	calls     []func(context.Context) error // of each worker
	latencies []*hdrhistogram.Histogram
	elapsed   time.Duration
	beside    []*meter // that run at the same time
	// collected is whether garbage is collected before each run, so that the garbage of other meters
	// does not count.
	collected bool

	reads func() int64 // the counter of reads, if there is one
	read  int64
}

// newMeter prepares workers. newWorker returns a worker's call, which has f.PerCall units.
func newMeter(f Figure, newWorker func(worker int) func(context.Context) error) *meter {
	m := &meter{figure: f, collected: true}
	for w := range f.Workers {
		m.calls = append(m.calls, newWorker(w))
		m.latencies = append(m.latencies, hdrhistogram.New(1, time.Minute.Nanoseconds(), 3))
	}
	return m
}

// run runs the workers for a duration, and the meters beside.
func (m *meter) run(ctx context.Context, duration time.Duration) error {
	if m.collected {
		runtime.GC()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.runAlone(ctx, duration) })
	for _, b := range m.beside {
		group.Go(func() error { return b.runAlone(ctx, duration) })
	}
	return group.Wait()
}

func (m *meter) runAlone(ctx context.Context, duration time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &m.figure
	var wg sync.WaitGroup
	var calls atomic.Int64
	var read int64
	if m.reads != nil {
		read = m.reads()
	}
	began := time.Now()
	end := began.Add(duration)
	var interval time.Duration // between the calls of a worker
	if f.Rate > 0 {
		interval = time.Duration(float64(f.Workers) / f.Rate * float64(time.Second))
	}
	for w, call := range m.calls {
		wg.Go(func() {
			sleep, err := newSleeper()
			if err != nil {
				cancel(err)
				return
			}
			defer sleep.close()
			now, slot := time.Now(), began
			next := func() time.Time {
				if interval == 0 {
					return now
				}
				due := slot.Add(rand.N(interval))
				slot = slot.Add(interval)
				return due
			}
			for due := next(); due.Before(end) && ctx.Err() == nil; due = next() {
				if err := sleep.until(due); err != nil { // returns at once in a closed loop
					cancel(err)
					return
				}
				if err := call(ctx); err != nil {
					cancel(err)
					return
				}
				now = time.Now()
				// Only a call of over a minute is out of range; it counts as a minute.
				if err := m.latencies[w].RecordValue(min(now.Sub(due), time.Minute).Nanoseconds()); err != nil {
					cancel(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	m.elapsed += max(time.Since(began), duration) // at a rate the last call may be due long before the end
	f.Calls += calls.Load()
	if m.reads != nil {
		m.read += m.reads() - read
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%s, %s: %w", f.Target, f.Measure, err)
	}
	return nil
}

// reset forgets the runs so far.
func (m *meter) reset() {
	m.figure.Calls, m.elapsed, m.read = 0, 0, 0
	for _, h := range m.latencies {
		h.Reset()
	}
}

// result returns the figure of all runs.
func (m *meter) result() Figure {
	all := hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)
	for _, h := range m.latencies {
		all.Merge(h)
	}
	us := func(quantile float64) float64 { return float64(all.ValueAtQuantile(quantile)) / 1000 }
	f := m.figure
	f.PerSecond = float64(f.Calls) * float64(f.PerCall) / m.elapsed.Seconds()
	f.P50, f.P90, f.P99, f.P999 = us(50), us(90), us(99), us(99.9)
	f.Reads = 1000 * float64(m.read) / float64(max(1, f.Calls*int64(f.PerCall)))
	return f
}

// take runs a meter once.
func (m *meter) take(ctx context.Context, duration time.Duration) (Figure, error) {
	if err := m.run(ctx, duration); err != nil {
		return m.figure, err
	}
	return m.result(), nil
}

// interleave runs meters alternately, a part of the duration each time, so that other load
// of the machine affects all of them. One whose calls take longer than a part runs for fewer
// parts, and one that failed does not run again. It returns the error of each.
func interleave(ctx context.Context, duration time.Duration, meters ...*meter) []error {
	parts := time.Duration(6)
	if len(meters) == 1 {
		parts = 1
	}
	failed := make([]error, len(meters))
	for range parts {
		for i, m := range meters {
			if failed[i] == nil && m.elapsed < duration {
				failed[i] = m.run(ctx, duration/parts)
			}
		}
	}
	return failed
}

// prepared is the number of questions that a worker repeats. They are drawn before the
// measurement, because drawing takes longer than answering. At a rate there are fewer: the garbage
// collector of a target in this process marks them, too.
const prepared, preparedAtRate = 1 << 13, 1 << 10

// checks measures single checks.
func checks(ctx context.Context, t Target, w Workload, workers int, duration time.Duration) (Figure, error) {
	return checking(t, w, workers, nil).take(ctx, duration)
}

// checking returns the meter of single checks. change, if not nil, changes the figure.
func checking(t Target, w Workload, workers int, change func(*Figure)) *meter {
	f := Figure{Target: t.Name(), Workload: w.Name(), Measure: "check", Workers: workers, PerCall: 1}
	if change != nil {
		change(&f)
	}
	return asking(f, t, f.Target != echoName, func(worker int) [][]Question {
		draw := w.Questioner(1, uint64(worker))
		n := prepared
		if f.Rate > 0 {
			n = preparedAtRate
		}
		questions := make([][]Question, n)
		for i := range questions {
			questions[i] = []Question{draw.Next()}
		}
		return questions
	})
}

// batchSize is the number of checks of a batch. preparedBatches are shared out among workers;
// they are so many that other engines, which keep answers, are not asked the same twice.
const batchSize, preparedBatches = 500, 1 << 10

// batches returns the meter of batches of checks about one subject, or of checks drawn one
// by one.
func batches(t Target, w Workload, mixed bool, workers int) *meter {
	f := Figure{Target: t.Name(), Workload: w.Name(), Measure: "batch", Workers: workers, PerCall: batchSize}
	if mixed {
		f.Measure = "batch of many subjects"
	}
	return asking(f, t, true, func(worker int) [][]Question {
		draw := w.Questioner(2, uint64(worker))
		drawn := make([][]Question, preparedBatches/workers)
		for i := range drawn {
			if mixed {
				drawn[i] = nextOf(draw, batchSize)
			} else {
				drawn[i] = draw.Batch(batchSize)
			}
		}
		return drawn
	})
}

// nextOf draws questions one by one.
func nextOf(draw Questioner, n int) []Question {
	questions := make([]Question, n)
	for i := range questions {
		questions[i] = draw.Next()
	}
	return questions
}

// asking returns the meter of calls that ask questions, and optionally compares the
// answers.
func asking(f Figure, t Target, compare bool, draw func(worker int) [][]Question) *meter {
	return newMeter(f, func(worker int) func(context.Context) error {
		drawn := draw(worker)
		calls := make([]Call, len(drawn))
		for i, questions := range drawn {
			calls[i] = t.Prepare(questions)
		}
		n := 0
		return func(ctx context.Context) error {
			questions, call := drawn[n%len(drawn)], calls[n%len(drawn)]
			n++
			if !compare {
				_, err := call(ctx)
				return err
			}
			return ask(ctx, call, questions)
		}
	})
}

// ask makes a call and compares the answers.
func ask(ctx context.Context, call Call, questions []Question) error {
	allowed, err := call(ctx)
	if err != nil {
		return err
	}
	for i := range questions {
		if allowed[i] != questions[i].Allowed {
			return wrong(&questions[i], allowed[i])
		}
	}
	return nil
}

var errWrong = errors.New("wrong answer")

func wrong(q *Question, allowed bool) error {
	return fmt.Errorf("%w: may %s %s %s? got %v, the oracle answers %v", errWrong, q.Subject, q.Action, q.Resource, allowed, q.Allowed)
}

// writing returns the meter of calls of which one in every writes a tuple. The next call
// checks that tuple, and must reflect the write; the others are the calls of [checks].
func writing(t Target, w Growing, every, workers int) *meter {
	f := Figure{Target: t.Name(), Workload: w.Name(), Measure: "write", Workers: workers, PerCall: 1}
	if every > 1 {
		f.Measure = fmt.Sprintf("check, every %dth call a write", every)
	}
	return newMeter(f, func(worker int) func(context.Context) error {
		draw := w.Questioner(3, uint64(worker))
		writer := uint64((every*100+workers)*100 + worker) // its tuples differ from those of other figures
		n := 0
		var question Question
		return func(ctx context.Context) error {
			n++
			if n%every == 0 {
				var tuple tuplestore.Tuple
				tuple, question = w.New(writer, n)
				return t.Write(ctx, []tuplestore.Tuple{tuple})
			}
			if n%every != 1 || n == 1 {
				question = draw.Next()
			}
			allowed, err := t.Prepare([]Question{question})(ctx)
			if err == nil && allowed[0] != question.Allowed {
				err = wrong(&question, allowed[0])
			}
			return err
		}
	})
}
