package oauth

import "context"

// Tidy deletes expired rows, as [Service.Run] does.
func (s *Service) Tidy(ctx context.Context) error { return s.tidy(ctx) }
