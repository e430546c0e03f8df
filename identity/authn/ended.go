package authn

import (
	"context"

	"stonetown/identity/session"
	"stonetown/internal/jobs"
	"stonetown/internal/outbox"
	"stonetown/internal/sqldb"
)

// Handle lets do have the jobs of a kind that somebody else has put into the outbox. It is
// for before [Service.Run].
func (s *Service) Handle(kind string, do func(context.Context, outbox.Job) error) {
	s.others[kind] = do
}

// OnSessionEnd lets tell know of each session that somebody has ended, once, within a second
// and a transaction of its own. It is for before [Service.Run].
func (s *Service) OnSessionEnd(tell func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error) {
	s.sessionEnded = append(s.sessionEnded, tell)
}

// endedAtOnce is how many ended sessions are read at once.
const endedAtOnce = 100

// tellEnded tells of ended sessions until ctx ends.
func (s *Service) tellEnded(ctx context.Context) {
	jobs.Loop{Name: "tell of ended sessions", Every: outbox.Poll, Logger: s.log}.Run(ctx, func(ctx context.Context) (more bool, err error) {
		ended, err := s.sessions.Ended(ctx, endedAtOnce)
		for _, e := range ended {
			if err == nil {
				err = s.tell(ctx, e)
			}
		}
		if err == nil && len(ended) > 0 {
			s.outbox.Wake()
		}
		return len(ended) > 0, err
	})
}

func (s *Service) tell(ctx context.Context, e session.Ended) error {
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		first, err := session.Told(ctx, tx, e)
		if err != nil || !first {
			return err
		}
		for _, tell := range s.sessionEnded {
			if err := tell(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}
