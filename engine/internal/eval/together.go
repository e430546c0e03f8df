package eval

import "context"

// RunTogether runs evaluations of one view, each about a subject of its own, level by level.
// With a reader, a level of all of them is one read. questions has the questions that each
// evaluation was asked.
func RunTogether(ctx context.Context, evaluations []*Evaluation, questions [][]Question) error {
	if len(evaluations) == 0 {
		return nil
	}
	if err := runTogether(ctx, evaluations); err != nil {
		return err
	}
	if !evaluations[0].view.Undecided {
		return nil
	}
	for i, e := range evaluations {
		e.askInModes(questions[i])
	}
	return runTogether(ctx, evaluations)
}

func runTogether(ctx context.Context, evaluations []*Evaluation) error {
	running := append([]*Evaluation(nil), evaluations...)
	for len(running) > 0 {
		n := 0
		for _, e := range running {
			if e.advance() {
				running[n] = e
				n++
			}
		}
		running = running[:n]
		for _, e := range running {
			if e.reader != nil {
				e.want()
			}
		}
		if n > 0 && running[0].reader != nil {
			if err := running[0].reader.Read(ctx, running[0].budget); err != nil {
				return err
			}
		}
		for _, e := range running {
			if err := e.expandFrontier(); err != nil {
				return err
			}
		}
	}
	for _, e := range evaluations {
		if err := e.settle(); err != nil {
			return err
		}
	}
	return nil
}
