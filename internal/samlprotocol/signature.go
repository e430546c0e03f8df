package samlprotocol

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // hashes of the algorithms
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"stonetown/internal/text"
)

// methods are the algorithms of signatures that are accepted: RSA (PKCS #1 v1.5) and ECDSA with
// SHA-2. SHA-1 is broken, and an HMAC would be keyed with a public key.
var methods = map[string]x509.SignatureAlgorithm{
	dsig.RSASHA256SignatureMethod:   x509.SHA256WithRSA,
	dsig.RSASHA384SignatureMethod:   x509.SHA384WithRSA,
	dsig.RSASHA512SignatureMethod:   x509.SHA512WithRSA,
	dsig.ECDSASHA256SignatureMethod: x509.ECDSAWithSHA256,
	dsig.ECDSASHA384SignatureMethod: x509.ECDSAWithSHA384,
	dsig.ECDSASHA512SignatureMethod: x509.ECDSAWithSHA512,
}

// digests are the accepted algorithms of digests.
var digests = []string{
	"http://www.w3.org/2001/04/xmlenc#sha256",
	"http://www.w3.org/2001/04/xmldsig-more#sha384",
	"http://www.w3.org/2001/04/xmlenc#sha512",
}

// MinRSA is the minimum size of RSA keys, in bits (NIST SP 800-131A).
const MinRSA = 2048

var errSignature = errors.New("the signature is not that of a certificate of the other side")

// Verify verifies the enveloped signature of an element (SAML Core §5.4), which must be a child of
// it. It returns the bytes that the digest covers: the element without the signature, in canonical
// form. Only what is read from these is authentic.
func Verify(e *etree.Element, certificates []*x509.Certificate, now time.Time) ([]byte, error) {
	e = Detach(e)
	method, err := checkSignature(e)
	if err != nil {
		return nil, err
	}
	signature := Children(e, SignatureName)[0]
	value := signature.FindElement("./" + dsig.SignatureValueTag)
	raw, err := decodeBase64(value.Text())
	if err != nil {
		return nil, Refused("SignatureValue is not base64")
	}
	// KeyInfo is not signed: the given certificates are tried instead.
	for _, info := range Children(signature, xml.Name{Space: SignatureNS, Local: dsig.KeyInfoTag}) {
		signature.RemoveChild(info)
	}
	var covered []byte
	err = tryCertificates(certificates, method, raw, now, func(c *x509.Certificate, signed []byte) error {
		value.SetText(base64.StdEncoding.EncodeToString(signed))
		context := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{c}})
		context.Clock = dsig.NewFakeClockAt(now)
		verified, err := context.Validate(e)
		if err != nil {
			return err
		}
		covered, err = Write(verified)
		return err
	})
	return covered, err
}

// checkSignature refuses a signature of an element that has another form than that of SAML (SAML
// Core §5.4): one reference, to the element, with the enveloped signature transform and exclusive
// canonicalization, and no objects. It returns the algorithm.
func checkSignature(e *etree.Element) (method string, err error) {
	id := e.SelectAttrValue("ID", "")
	signatures := Children(e, SignatureName)
	if len(signatures) != 1 || id == "" {
		return "", Refused("the element has no ID, or not one signature")
	}
	var s struct {
		Infos []struct {
			Canonicalization []algorithm `xml:"http://www.w3.org/2000/09/xmldsig# CanonicalizationMethod"`
			Method           []algorithm `xml:"http://www.w3.org/2000/09/xmldsig# SignatureMethod"`
			References       []struct {
				URI        string `xml:"URI,attr"`
				Transforms []struct {
					List []algorithm `xml:"http://www.w3.org/2000/09/xmldsig# Transform"`
				} `xml:"http://www.w3.org/2000/09/xmldsig# Transforms"`
				Digest []algorithm `xml:"http://www.w3.org/2000/09/xmldsig# DigestMethod"`
				Value  []string    `xml:"http://www.w3.org/2000/09/xmldsig# DigestValue"`
			} `xml:"http://www.w3.org/2000/09/xmldsig# Reference"`
		} `xml:"http://www.w3.org/2000/09/xmldsig# SignedInfo"`
		Values []string `xml:"http://www.w3.org/2000/09/xmldsig# SignatureValue"`
	}
	document, err := Write(Detach(signatures[0]))
	if err == nil {
		err = xml.Unmarshal(document, &s)
	}
	if err != nil {
		return "", Refused("the signature is not XML")
	}
	for _, child := range signatures[0].ChildElements() {
		if child.NamespaceURI() != SignatureNS || !slices.Contains([]string{dsig.SignedInfoTag, dsig.SignatureValueTag, dsig.KeyInfoTag}, child.Tag) {
			return "", Refused("the signature has an element that SAML excludes")
		}
	}
	if len(s.Infos) != 1 || len(s.Values) != 1 || len(s.Infos[0].References) != 1 {
		return "", Refused("the signature does not have one SignedInfo with one Reference, and one SignatureValue")
	}
	info, reference := s.Infos[0], s.Infos[0].References[0]
	if len(signatures[0].FindElement("./"+dsig.SignedInfoTag).ChildElements()) != 3 || len(info.Canonicalization) != 1 || len(info.Method) != 1 || len(reference.Transforms) != 1 || len(reference.Digest) != 1 || len(reference.Value) != 1 {
		return "", Refused("the signature has an element twice, or misses one")
	}
	method = info.Method[0].Name
	transforms := reference.Transforms[0].List
	exclusive := dsig.CanonicalXML10ExclusiveAlgorithmId.String()
	switch {
	case reference.URI != "#"+id:
		return "", Refused("the signature refers to another element")
	case methods[method] == 0 || !slices.Contains(digests, reference.Digest[0].Name):
		return "", Refused("the algorithm of the signature or of its digest is not accepted: %s, %s", text.Quote(method), text.Quote(reference.Digest[0].Name))
	case info.Canonicalization[0].Name != exclusive,
		len(transforms) != 2 || transforms[0].Name != dsig.EnvelopedSignatureAltorithmId.String() || transforms[1].Name != exclusive:
		return "", Refused("the signature must have the transforms of an enveloped signature and of exclusive canonicalization without comments")
	}
	return method, nil
}

type algorithm struct {
	Name string `xml:"Algorithm,attr"`
}

// tryCertificates calls check for the certificates that can have made a signature, until one
// succeeds. signed is the signature in the form of crypto/x509, which is ASN.1 for ECDSA.
func tryCertificates(certificates []*x509.Certificate, method string, raw []byte, now time.Time, check func(c *x509.Certificate, signed []byte) error) error {
	expired := false
	for _, c := range certificates {
		signed, ok := fits(c.PublicKey, methods[method], raw)
		if !ok {
			continue
		}
		valid := !now.Before(c.NotBefore) && !now.After(c.NotAfter)
		if valid && check(c, signed) == nil {
			return nil
		}
		expired = expired || !valid
	}
	if expired {
		return Failed(Misconfigured, "%v, and an expired certificate was not tried", errSignature)
	}
	return Refused("%v", errSignature)
}

// fits reports whether a key can have made a signature with an algorithm, and returns the
// signature in the form of crypto/x509. That of ECDSA in XML is the two numbers with the length of
// the curve (RFC 4051 §2.3.6, XML Signature 1.1 §6.4.3), not ASN.1.
func fits(key crypto.PublicKey, method x509.SignatureAlgorithm, raw []byte) ([]byte, bool) {
	switch method {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA:
		rsaKey, ok := key.(*rsa.PublicKey)
		return raw, ok && rsaKey.N.BitLen() >= MinRSA
	}
	curveKey, ok := key.(*ecdsa.PublicKey)
	if !ok || curveKey.Curve == elliptic.P224() || len(raw) != 2*curveSize(curveKey) {
		return nil, false
	}
	half := len(raw) / 2
	signed, err := asn1.Marshal(point{new(big.Int).SetBytes(raw[:half]), new(big.Int).SetBytes(raw[half:])})
	return signed, err == nil
}

type point struct{ R, S *big.Int }

// curveSize returns the length of the numbers of a curve, in bytes.
func curveSize(key *ecdsa.PublicKey) int { return (key.Curve.Params().BitSize + 7) / 8 }

// xmlSigner signs as XML signatures require: with numbers instead of ASN.1 for ECDSA.
type xmlSigner struct{ crypto.Signer }

// Sign implements [crypto.Signer].
func (s xmlSigner) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	signed, err := s.Signer.Sign(random, digest, options)
	key, ok := s.Public().(*ecdsa.PublicKey)
	if err != nil || !ok {
		return signed, err
	}
	var p point
	if _, err := asn1.Unmarshal(signed, &p); err != nil {
		return nil, err
	}
	size := curveSize(key)
	raw := make([]byte, 2*size)
	p.R.FillBytes(raw[:size])
	p.S.FillBytes(raw[size:])
	return raw, nil
}

// signing returns what signs with a key, with the hash that fits its curve.
func signing(key Key) (*dsig.SigningContext, error) {
	context, err := dsig.NewSigningContext(xmlSigner{key.Private}, [][]byte{key.Certificate.Raw})
	if err != nil {
		return nil, errCannotSign
	}
	context.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	method := dsig.RSASHA256SignatureMethod
	if public, ok := key.Private.Public().(*ecdsa.PublicKey); ok {
		switch public.Curve {
		case elliptic.P384():
			method = dsig.ECDSASHA384SignatureMethod
		case elliptic.P521():
			method = dsig.ECDSASHA512SignatureMethod
		default:
			method = dsig.ECDSASHA256SignatureMethod
		}
	}
	if context.SetSignatureMethod(method) != nil {
		return nil, errCannotSign
	}
	return context, nil
}

// Sign signs an element (SAML Core §5.4), which must have an ID and, as its first child, Issuer: the
// schema has the signature after it.
func Sign(e *etree.Element, key Key) error {
	context, err := signing(key)
	if err != nil {
		return err
	}
	signature, err := context.ConstructSignature(Detach(e), true) // a copy, which becomes canonical
	if err != nil {
		return errCannotSign
	}
	e.InsertChildAt(e.ChildElements()[0].Index()+1, signature)
	return nil
}

var errCannotSign = Failed(Misconfigured, "the key of this side cannot sign")

// decodeBase64 decodes base64 with blanks and line breaks, as XML has it.
func decodeBase64(encoded string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
}
