// Package samltest has keys for the tests of SAML, and other implementations of it.
package samltest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"

	"stonetown/internal/samlprotocol"
)

// Now is the time of tests without other implementations.
var Now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// NewKey returns a key with a certificate that is valid for a year before and after an instant.
func NewKey(private crypto.Signer, now time.Time) samlprotocol.Key {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return samlprotocol.Key{Private: private, Certificate: certificate}
}

// RSA returns a key whose certificate is valid at [Now].
func RSA(bits int) samlprotocol.Key {
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return NewKey(private, Now)
}

// ECDSA returns a key whose certificate is valid at [Now].
func ECDSA(curve elliptic.Curve) samlprotocol.Key {
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		panic(err)
	}
	return NewKey(private, Now)
}
