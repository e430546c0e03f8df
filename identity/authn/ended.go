package authn

import (
	"context"

	"stonetown/identity/session"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// OnSessionEnd registers a function that is called once for each session that is ended, within
// about a second, in a transaction of its own. It must be called before [Service.Run].
func (s *Service) OnSessionEnd(report func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error) {
	s.sessionEnded = append(s.sessionEnded, report)
}

// endedPage is the number of ended sessions that are read at a time.
const endedPage = 100

// reportEnded reports ended sessions until ctx ends.
func (s *Service) reportEnded(ctx context.Context) {
	jobs.Loop{Name: "report ended sessions", Every: jobs.Poll, Logger: s.log}.Run(ctx, func(ctx context.Context) (more bool, err error) {
		ended, err := s.sessions.Ended(ctx, endedPage)
		for _, e := range ended {
			if err == nil {
				err = s.report(ctx, e)
			}
		}
		if err == nil && len(ended) > 0 {
			s.jobs.Wake()
		}
		return len(ended) > 0, err
	})
}

func (s *Service) report(ctx context.Context, e session.Ended) error {
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		first, err := session.Reported(ctx, tx, e)
		if err != nil || !first {
			return err
		}
		for _, report := range s.sessionEnded {
			if err := report(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}
