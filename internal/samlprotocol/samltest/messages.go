package samltest

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"net/url"
	"testing"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/samlprotocol"
)

// Parse returns the root of a document.
func Parse(t testing.TB, document string) *etree.Element {
	t.Helper()
	doc := etree.NewDocument()
	if err := doc.ReadFromString(document); err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

// Write returns the XML of an element.
func Write(t testing.TB, e *etree.Element) string {
	t.Helper()
	out, err := samlprotocol.Write(e.Copy())
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Sign signs the root of a document.
func Sign(t testing.TB, document string, key samlprotocol.Key) string {
	t.Helper()
	root := Parse(t, document)
	if err := samlprotocol.Sign(root, key); err != nil {
		t.Fatal(err)
	}
	return Write(t, root)
}

// Form returns a document as a form of the POST binding.
func Form(param, document string) url.Values {
	return url.Values{param: {base64.StdEncoding.EncodeToString([]byte(document))}}
}

// Query returns a document as a query of the redirect binding, without a signature.
func Query(t testing.TB, param, document string) string {
	t.Helper()
	var deflated bytes.Buffer
	w, err := flate.NewWriter(&deflated, flate.BestSpeed)
	if err == nil {
		_, err = w.Write([]byte(document))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return param + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(deflated.Bytes()))
}

// SignQuery adds the algorithm and the signature of an RSA key to any query.
func SignQuery(t testing.TB, query string, key samlprotocol.Key) string {
	t.Helper()
	context, err := dsig.NewSigningContext(key.Private, nil)
	if err != nil {
		t.Fatal(err)
	}
	query += "&SigAlg=" + url.QueryEscape(context.GetSignatureMethodIdentifier())
	raw, err := context.SignString(query)
	if err != nil {
		t.Fatal(err)
	}
	return query + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(raw))
}
