package resources

import (
	"stonetown/api/web"
	"stonetown/engine"
)

// origin returns the caller as the origin of a change.
func origin(info *web.RequestInfo) engine.Origin {
	return engine.Origin{Actor: info.Principal.Subject, CommitID: info.CommitID}
}
