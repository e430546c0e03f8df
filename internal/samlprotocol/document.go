package samlprotocol

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
)

// The namespaces.
const (
	ProtocolNS   = "urn:oasis:names:tc:SAML:2.0:protocol"
	AssertionNS  = "urn:oasis:names:tc:SAML:2.0:assertion"
	MetadataNS   = "urn:oasis:names:tc:SAML:2.0:metadata"
	SignatureNS  = "http://www.w3.org/2000/09/xmldsig#"
	EncryptionNS = "http://www.w3.org/2001/04/xmlenc#"
)

// The limits of documents.
const (
	maxDepth      = 32
	maxElements   = 10_000
	maxAttributes = 32 // of an element, with declarations of namespaces
)

// The names of elements that have a place of their own in a message.
var (
	AssertionName          = xml.Name{Space: AssertionNS, Local: "Assertion"}
	EncryptedAssertionName = xml.Name{Space: AssertionNS, Local: "EncryptedAssertion"}
	SignatureName          = xml.Name{Space: SignatureNS, Local: "Signature"}
	ResponseName           = xml.Name{Space: ProtocolNS, Local: "Response"}
)

// The errors of Inspect complete the sentence "the document ...".
var (
	errTooLarge    = errors.New("is too large")
	errInvalidName = errors.New("has an invalid name of an element or an attribute")
)

// Inspect reads all tokens of a document, and returns the name of its root. It refuses what
// programs read in different ways, and what costs more than a real document: a document type,
// which can declare entities (XML 1.0 §4.2), comments, processing instructions, names that are none
// in XML namespaces, attributes of an element with the same name, an ID twice, and documents that are
// too deep or too large.
//
// Comments are allowed in metadata, which is trusted and often has them.
func Inspect(document []byte, metadata bool) (root xml.Name, err error) {
	if len(document) > MaxDocument {
		return root, errTooLarge
	}
	if !utf8.Valid(document) {
		return root, errors.New("is not UTF-8")
	}
	d := xml.NewDecoder(bytes.NewReader(document))
	ids := make(map[string]bool)
	for depth, elements := 0, 0; ; {
		begins := d.InputOffset() == 0
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return root, errors.New("is not well-formed XML")
		}
		switch token := token.(type) {
		case xml.Directive:
			return root, errors.New("has a document type")
		case xml.Comment:
			if !metadata {
				return root, errors.New("has a comment")
			}
		case xml.ProcInst:
			if !begins || token.Target != "xml" {
				return root, errors.New("has a processing instruction")
			}
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(token)) > 0 {
				return root, errors.New("has text outside of its root")
			}
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth == 0 {
				if elements > 0 {
					return root, errors.New("has two roots")
				}
				root = token.Name
			}
			depth++
			elements++
			if depth > maxDepth || elements > maxElements || len(token.Attr) > maxAttributes {
				return root, errors.New("is too deep, or has too many elements or attributes")
			}
			if strings.Contains(token.Name.Local, ":") {
				return root, errInvalidName
			}
			if err := checkAttributes(token.Attr, ids); err != nil {
				return root, err
			}
		}
	}
	if root.Local == "" {
		return root, errors.New("is empty")
	}
	return root, nil
}

// checkAttributes refuses attributes of an element with the same local name, and an ID that another
// element has. Declarations of namespaces count as attributes, because libraries find attributes by
// the local name only: xmlns:ID would be found as ID.
func checkAttributes(attributes []xml.Attr, ids map[string]bool) error {
	for i, a := range attributes {
		if strings.Contains(a.Name.Local, ":") {
			return errInvalidName
		}
		for _, other := range attributes[:i] {
			if strings.EqualFold(other.Name.Local, a.Name.Local) {
				return errors.New("has an element with two attributes of a name")
			}
		}
		if strings.EqualFold(a.Name.Local, "id") {
			if ids[a.Value] {
				return errors.New("has an ID twice")
			}
			ids[a.Value] = true
		}
	}
	return nil
}

// Parse returns the root of a message, which must have the given name. The structure is that of
// a message without nested ones: at most one assertion, plain or encrypted, a child of the root
// or the root; signatures only as children of the root and of the assertion, one of each.
func Parse(document []byte, want xml.Name) (*etree.Element, error) {
	root, err := Inspect(document, false)
	if err != nil {
		return nil, Refused("the document %v", err)
	}
	if root != want {
		return nil, Refused("the document is not a %s", want.Local)
	}
	tree := etree.NewDocument()
	if tree.ReadFromBytes(document) != nil || tree.Root() == nil || !is(tree.Root(), want) {
		return nil, Refused("the document is not well-formed XML")
	}
	assertions := 0
	return tree.Root(), checkStructure(tree.Root(), 0, &assertions)
}

// checkStructure refuses what Parse excludes, below an element and in it.
func checkStructure(e *etree.Element, depth int, assertions *int) error {
	signatures := 0
	space := e.NamespaceURI()
	switch {
	case space == AssertionNS && (e.Tag == AssertionName.Local || e.Tag == EncryptedAssertionName.Local):
		if *assertions++; *assertions > 1 || depth > 1 {
			return Refused("the document has several assertions, or one that is nested")
		}
	case space == ProtocolNS && depth > 0 && (e.SelectAttr("IssueInstant") != nil || e.Tag == ResponseName.Local):
		return Refused("the document has a nested message")
	}
	for _, child := range e.ChildElements() {
		if is(child, SignatureName) {
			if signatures++; signatures > 1 || depth > 0 && !is(e, AssertionName) {
				return Refused("the document has several signatures of an element, or one that is nested")
			}
		}
		if err := checkStructure(child, depth+1, assertions); err != nil {
			return err
		}
	}
	return nil
}

func is(e *etree.Element, name xml.Name) bool {
	return e.Tag == name.Local && e.NamespaceURI() == name.Space
}

// Children returns the children of an element with a name.
func Children(e *etree.Element, name xml.Name) (list []*etree.Element) {
	for _, child := range e.ChildElements() {
		if is(child, name) {
			list = append(list, child)
		}
	}
	return list
}

// Detach returns a copy of an element, as the root of a document, that has the declarations of
// namespaces of its ancestors.
func Detach(e *etree.Element) *etree.Element {
	c := e.Copy()
	for ancestor := e.Parent(); ancestor != nil; ancestor = ancestor.Parent() {
		for _, a := range ancestor.Attr {
			if (a.Space == "xmlns" || a.Space == "" && a.Key == "xmlns") && c.SelectAttr(a.FullKey()) == nil {
				c.CreateAttr(a.FullKey(), a.Value)
			}
		}
	}
	return c
}

// Write returns the XML of an element. All characters of it are read as they are, including line
// breaks, which parsers change if they are not escaped; those that XML does not have are replaced, as
// in canonical XML.
func Write(e *etree.Element) ([]byte, error) {
	doc := etree.NewDocument()
	doc.WriteSettings.CanonicalText, doc.WriteSettings.CanonicalAttrVal = true, true
	doc.SetRoot(e)
	return doc.WriteToBytes()
}
