package masterkey

// Sealed returns the names of all columns of sealed values, as table.column.
func Sealed() (names []string) {
	for _, c := range sealed {
		names = append(names, c.table+"."+c.name)
	}
	return names
}
