package resources

import (
	"stonetown/api/web"
	"stonetown/engine"
)

// origin says that a change comes from the caller.
func origin(call *web.Call) engine.Origin {
	return engine.Origin{Actor: call.Principal.Subject, CommitID: call.CommitID}
}
