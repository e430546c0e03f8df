package bench

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper returns at an instant, to within 0.1 ms if a processor is idle. A timer of Go would be up
// to a millisecond late: while the program is idle, it waits in epoll_wait(2), which counts in
// milliseconds. Goroutines in nanosleep(2) would keep their places in GOMAXPROCS, and others wait
// for one. Reading a timerfd does neither. It is for one goroutine.
type sleeper struct {
	fd    int // of the timer
	timer *os.File
}

func newSleeper() (sleeper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return sleeper{}, fmt.Errorf("timer: %w", err)
	}
	return sleeper{fd, os.NewFile(uintptr(fd), "timer")}, nil
}

func (s sleeper) until(at time.Time) error {
	d := time.Until(at)
	if d <= 0 {
		return nil
	}
	if err := unix.TimerfdSettime(s.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil); err != nil {
		return fmt.Errorf("timer: %w", err)
	}
	var expired [8]byte // how often
	_, err := s.timer.Read(expired[:])
	return err
}

func (s sleeper) close() { _ = s.timer.Close() }
