package access

// The statements about sign-ins to service providers.
const (
	SelectSignIn           = selectSignIn
	SelectSignIns          = selectSignIns
	SelectServiceProviders = selectServiceProviders
)
