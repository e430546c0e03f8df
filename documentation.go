// Package stonetown contains the text of the documentation. The program is cmd/stonetown.
package stonetown

import "embed"

// Documentation contains the README and the pages of docs, as Markdown.
//
//go:embed README.md CONTRIBUTING.md CHANGELOG.md docs/*.md
var Documentation embed.FS

// Examples contains documents with types, relations and tests, of this product and of other engines.
//
//go:embed examples/*.yaml examples/openfga/*.yaml examples/spicedb/*.yaml
var Examples embed.FS
