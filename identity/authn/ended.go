package authn

import (
	"context"
	"time"

	"stonetown/identity/session"
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
	tick := time.NewTicker(outbox.Poll)
	defer tick.Stop()
	for {
		ended, err := s.sessions.Ended(ctx, endedAtOnce)
		for _, e := range ended {
			if err == nil {
				err = s.tell(ctx, e)
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.ErrorContext(ctx, "tell of ended sessions", "error", err)
		case len(ended) > 0:
			s.outbox.Wake()
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
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
