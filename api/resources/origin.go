package resources

import (
	"stonetown/api/web"
	"stonetown/engine"
)

// origin says that a change comes from the caller.
func origin(info *web.RequestInfo) engine.Origin {
	return engine.Origin{Actor: info.Principal.Subject, CommitID: info.CommitID}
}
