package relyingparty

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Directories are directories of one provider, each with its own users and its own issuer. Microsoft
// calls a directory a tenant. The zero value is all directories.
type Directories struct {
	Only   string // the id of the only one; empty: there is no such limit
	Except string // the id of one that is not among them; empty: there is none
}

// contain reports whether a directory is among d.
func (d Directories) contain(id string) bool {
	return id != "" && id != d.Except && (d.Only == "" || id == d.Only)
}

const (
	// placeOfID is the place of a directory's id in an issuer of Microsoft.
	placeOfID = "{tenantid}"
	// placeOfDirectory is the place of [Provider.Directory] in the address of the metadata.
	placeOfDirectory = "{tenant}"

	maxDomain = 253 // bytes
)

var (
	// uuid is the form of the ids of directories.
	uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	// domain is the form of the domains of directories, in their ASCII form.
	domain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)
)

// CheckDirectory fails with the class [Misconfigured] unless a provider of the preset can have a
// [Provider.Directory]. It sends no request, so the directory may not exist.
func (p Preset) CheckDirectory(directory string) error {
	_, named := p.Directories[directory]
	switch {
	case p.Directories == nil && directory != "":
		return failed(Misconfigured, Configuration, "a provider of the kind has no directories")
	case p.Directories == nil, named, uuid.MatchString(directory), len(directory) <= maxDomain && domain.MatchString(directory):
		return nil
	}
	return failed(Misconfigured, Configuration, "the directory is none of %q, and not the id or a domain of one", slices.Sorted(maps.Keys(p.Directories)))
}

// locate returns the location of the metadata of a provider with an issuer, for a valid directory.
// Metadata for several directories has the template of their issuers.
func (p Preset) locate(directory string) location {
	from := locate(p.Issuer)
	if p.DiscoveryURL != "" {
		from.url = strings.Replace(p.DiscoveryURL, placeOfDirectory, directory, 1)
	}
	switch named, ok := p.Directories[directory]; {
	case p.Directories == nil, ok && named.Only == "":
	case ok:
		from.issuer = issuerOf(p.Issuer, named.Only)
	case uuid.MatchString(directory):
		from.issuer = issuerOf(p.Issuer, directory)
	default:
		from.filled = true
	}
	return from
}

// allowed returns the directories whose users may sign in at a provider with metadata of
// [Preset.locate]: if its issuer is that of one directory, only this one.
func (p Preset) allowed(directory string, m Metadata) Directories {
	if id := directoryIn(m.Issuer, p.Issuer); id != "" {
		return Directories{Only: id}
	}
	return p.Directories[directory]
}

// issuerOf returns the issuer of a directory.
func issuerOf(template, id string) string { return strings.Replace(template, placeOfID, id, 1) }

// directoryIn returns the id of the directory in an issuer; empty: it is not that of one.
func directoryIn(issuer, template string) string {
	before, after, _ := strings.Cut(template, placeOfID)
	id, begins := strings.CutPrefix(issuer, before)
	id, ends := strings.CutSuffix(id, after)
	if !begins || !ends || !uuid.MatchString(id) {
		return ""
	}
	return id
}
