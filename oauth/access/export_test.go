package access

// Statements that are planned in tests.
const (
	SelectSignIn       = selectSignIn
	SelectSignIns      = selectSignIns
	SelectParticipants = selectParticipants
	SelectUsers        = selectUsers
)
