package samlkeys

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"math/big"
	"time"

	"stonetown/internal/seal"
)

const (
	keyBits = 2048
	// validYears is the validity of a certificate.
	validYears = 3
	// validBefore is how long before its creation a certificate is valid, for peers whose clocks
	// are late.
	validBefore = time.Hour
)

// generate returns a new key of a tenant, sealed, with a certificate that names the tenant. Peers
// compare certificates and verify no chain, so it is self-signed.
func generate(sealer *seal.Key, of owner, now time.Time) (Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return Key{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // at most 20 octets (RFC 5280 §4.1.2.2)
	if err != nil {
		return Key{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: of.tenantID},
		NotBefore: now.Add(-validBefore), NotAfter: now.AddDate(validYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return Key{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return Key{}, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(der)
	id := hex.EncodeToString(sum[:])
	return Key{ID: id, Use: of.use, Certificate: certificate, CreatedAt: now, sealed: sealer.Seal(of.tenantID, id, pkcs8)}, nil
}
