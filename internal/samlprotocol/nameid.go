package samlprotocol

import (
	"strings"

	"github.com/crewjam/saml"

	"stonetown/internal/text"
)

// NameID is the name of a user at an identity provider (SAML Core §2.2.3). Its qualifiers are
// for requests to the identity provider, which compares them.
type NameID struct {
	Value           string `json:"value"`
	Format          string `json:"format,omitempty"` // empty: unspecified
	NameQualifier   string `json:"name_qualifier,omitempty"`
	SPNameQualifier string `json:"sp_name_qualifier,omitempty"`
	SPProvidedID    string `json:"sp_provided_id,omitempty"`
}

// XML returns the name as a member of a message.
func (n NameID) XML() *saml.NameID {
	return &saml.NameID{
		Value: n.Value, Format: n.Format, NameQualifier: n.NameQualifier,
		SPNameQualifier: n.SPNameQualifier, SPProvidedID: n.SPProvidedID,
	}
}

// NameIDElement is NameID as it is received.
type NameIDElement struct {
	Value           string     `xml:",chardata"`
	Format          string     `xml:"Format,attr"`
	NameQualifier   string     `xml:"NameQualifier,attr"`
	SPNameQualifier string     `xml:"SPNameQualifier,attr"`
	SPProvidedID    string     `xml:"SPProvidedID,attr"`
	Members         []struct{} `xml:",any"`
}

// Read validates a name. It is compared bytewise, so blanks are not removed.
func (n NameIDElement) Read() (NameID, error) {
	if strings.TrimSpace(n.Value) == "" || len(n.Members) > 0 {
		return NameID{}, Refused("NameID is empty, or is not text")
	}
	id := NameID{n.Value, n.Format, n.NameQualifier, n.SPNameQualifier, n.SPProvidedID}
	for _, s := range []string{id.Value, id.Format, id.NameQualifier, id.SPNameQualifier, id.SPProvidedID} {
		if len(s) > MaxText || !text.IsLine(s) {
			return NameID{}, Refused("NameID or an attribute of it is not one line of at most %d bytes", MaxText)
		}
	}
	return id, nil
}
