package keys

// The statements of this package that read or change rows of several tenants, or by a state.
const (
	SelectTenantKeys = selectTenantKeys
	CountActive      = countActive
	SelectDueKeys    = selectDueKeys
	DeleteRecords    = deleteRecords
)
