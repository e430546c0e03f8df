package serviceprovider

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/crewjam/saml/xmlenc"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/samlprotocol/samltest"
)

// encryption is how a test encrypts.
type encryption struct {
	data, key, digest, mask string
	hash, maskHash          crypto.Hash
	peer                    bool // EncryptedKey beside EncryptedData
	more                    string
}

const (
	oaep             = "http://www.w3.org/2009/xmlenc11#rsa-oaep"
	oaepWithSHA1Mask = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"
)

var standardEncryption = encryption{
	data: "http://www.w3.org/2009/xmlenc11#aes256-gcm", key: oaepWithSHA1Mask, hash: crypto.SHA1, maskHash: crypto.SHA1,
}

func encrypt(to Key, plain string) string { return standardEncryption.encrypt(to, plain) }

func (x encryption) encrypt(to Key, plain string) string {
	bits := 0
	if _, err := fmt.Sscanf(x.data[strings.Index(x.data, "#"):], "#aes%d", &bits); err != nil {
		panic(err)
	}
	sessionKey := make([]byte, bits/8)
	_, _ = rand.Read(sessionKey)
	wrapped, err := rsa.EncryptOAEPWithOptions(rand.Reader, to.Certificate.PublicKey.(*rsa.PublicKey), sessionKey, &rsa.OAEPOptions{Hash: x.hash, MGFHash: x.maskHash})
	if err != nil {
		panic(err)
	}
	block, err := aes.NewCipher(sessionKey)
	if err != nil {
		panic(err)
	}
	var sealed []byte
	if strings.HasSuffix(x.data, "cbc") {
		padding := aes.BlockSize - len(plain)%aes.BlockSize
		padded := append([]byte(plain), make([]byte, padding)...)
		padded[len(padded)-1] = byte(padding)
		sealed = make([]byte, aes.BlockSize+len(padded))
		_, _ = rand.Read(sealed[:aes.BlockSize])
		cipher.NewCBCEncrypter(block, sealed[:aes.BlockSize]).CryptBlocks(sealed[aes.BlockSize:], padded)
	} else {
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			panic(err)
		}
		sealed = make([]byte, gcm.NonceSize())
		_, _ = rand.Read(sealed)
		sealed = gcm.Seal(sealed, sealed, []byte(plain), nil)
	}
	return x.element(base64.StdEncoding.EncodeToString(wrapped), base64.StdEncoding.EncodeToString(sealed))
}

func (x encryption) element(wrapped, sealed string) string {
	method := ""
	if x.digest != "" {
		method += `<ds:DigestMethod Algorithm="` + x.digest + `"/>`
	}
	if x.mask != "" {
		method += `<xenc11:MGF xmlns:xenc11="http://www.w3.org/2009/xmlenc11#" Algorithm="` + x.mask + `"/>`
	}
	key := `<xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="` + x.key + `">` + method + `</xenc:EncryptionMethod><xenc:CipherData><xenc:CipherValue>` + wrapped + `</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey>`
	inline, beside := key, ""
	if x.peer {
		inline, beside = "", key
	}
	return fmt.Sprintf(`<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"><xenc:EncryptedData Type="http://www.w3.org/2001/04/xmlenc#Element"><xenc:EncryptionMethod Algorithm="%s"/><ds:KeyInfo>%s%s</ds:KeyInfo><xenc:CipherData><xenc:CipherValue>%s</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>%s</saml:EncryptedAssertion>`,
		x.data, x.more, inline, sealed, beside)
}

func TestEncryptedAssertion(t *testing.T) {
	for name, x := range map[string]encryption{
		"AES-256-GCM":                     standardEncryption,
		"AES-192-GCM":                     {data: "http://www.w3.org/2009/xmlenc11#aes192-gcm", key: oaepWithSHA1Mask, hash: crypto.SHA1, maskHash: crypto.SHA1},
		"AES-128-GCM, key beside":         {data: "http://www.w3.org/2009/xmlenc11#aes128-gcm", key: oaepWithSHA1Mask, hash: crypto.SHA1, maskHash: crypto.SHA1, peer: true},
		"AES-128-CBC":                     {data: "http://www.w3.org/2001/04/xmlenc#aes128-cbc", key: oaepWithSHA1Mask, digest: "http://www.w3.org/2000/09/xmldsig#sha1", hash: crypto.SHA1, maskHash: crypto.SHA1},
		"AES-192-CBC":                     {data: "http://www.w3.org/2001/04/xmlenc#aes192-cbc", key: oaepWithSHA1Mask, digest: "http://www.w3.org/2001/04/xmlenc#sha256", hash: crypto.SHA256, maskHash: crypto.SHA1},
		"AES-256-CBC, OAEP with SHA-256":  {data: "http://www.w3.org/2001/04/xmlenc#aes256-cbc", key: oaep, digest: "http://www.w3.org/2001/04/xmlenc#sha256", mask: "http://www.w3.org/2009/xmlenc11#mgf1sha256", hash: crypto.SHA256, maskHash: crypto.SHA256},
		"OAEP with SHA-512":               {data: standardEncryption.data, key: oaep, digest: "http://www.w3.org/2001/04/xmlenc#sha512", mask: "http://www.w3.org/2009/xmlenc11#mgf1sha512", hash: crypto.SHA512, maskHash: crypto.SHA512},
		"OAEP with SHA-384, mask SHA-384": {data: standardEncryption.data, key: oaep, digest: "http://www.w3.org/2001/04/xmldsig-more#sha384", mask: "http://www.w3.org/2009/xmlenc11#mgf1sha384", hash: crypto.SHA384, maskHash: crypto.SHA384},
	} {
		t.Run(name, func(t *testing.T) {
			p := testProvider()
			p.Keys = []Key{samltest.ECDSA(elliptic.P256()), otherKey(), spKey()} // the key is not the first
			for _, signResponse := range []bool{false, true} {
				a := answer{}
				if signResponse {
					a.signResponse = idpKey()
				}
				response := a.wrap(x.encrypt(spKey(), sign(t, answer{}.assertion(), idpKey(), 0)))
				if signResponse {
					response = sign(t, response, idpKey(), 0)
				}
				identity, err := p.Finish(testPending(), post(response), testNow)
				if err != nil {
					t.Fatal(err.(*Error).Detail)
				}
				if identity.Subject.Value != "ann" {
					t.Error(identity)
				}
			}
		})
	}
}

// Another implementation encrypts.
func TestXMLEncPeer(t *testing.T) {
	for _, block := range []xmlenc.BlockCipher{xmlenc.AES128CBC, xmlenc.AES256CBC} {
		e := xmlenc.OAEP()
		e.BlockCipher, e.DigestMethod = block, xmlenc.SHA1
		data, err := e.Encrypt(spKey().Certificate, []byte(sign(t, answer{}.assertion(), idpKey(), 0)), nil)
		if err != nil {
			t.Fatal(err)
		}
		response := answer{}.wrap(`<saml:EncryptedAssertion>` + serialize(t, data) + `</saml:EncryptedAssertion>`)
		if _, err := testProvider().Finish(testPending(), post(response), testNow); err != nil {
			t.Error(err.(*Error).Detail)
		}
	}
}

// Anybody can encrypt to a service provider: an encrypted assertion without a signature is no
// assertion of the identity provider (CVE-2026-2092), in a response with a signature elsewhere or
// around it.
func TestEncryptedInjection(t *testing.T) {
	evil := encrypt(spKey(), answer{nameID: "mallory"}.assertion())
	good := sign(t, answer{}.assertion(), idpKey(), 0)
	nested := answer{}.wrap(good)
	for name, document := range map[string]string{
		"alone":                           answer{}.wrap(evil),
		"in a signed response":            sign(t, answer{}.wrap(evil), idpKey(), 0),
		"beside a signed assertion":       answer{}.wrap(good + evil),
		"before a signed assertion":       answer{}.wrap(evil + good),
		"signed by another":               answer{}.wrap(encrypt(spKey(), sign(t, answer{}.assertion(), otherKey(), 0))),
		"a response":                      answer{}.wrap(encrypt(spKey(), nested)),
		"two assertions":                  answer{}.wrap(encrypt(spKey(), good+good)),
		"signed assertion in another":     answer{}.wrap(encrypt(spKey(), strings.Replace(answer{nameID: "mallory", assertionID: "_evil"}.assertion(), "</saml:Assertion>", good+"</saml:Assertion>", 1))),
		"encrypted assertion in it":       answer{}.wrap(encrypt(spKey(), evil)),
		"document type":                   answer{}.wrap(encrypt(spKey(), "<!DOCTYPE x>"+good)),
		"no XML":                          answer{}.wrap(encrypt(spKey(), "x")),
		"empty":                           answer{}.wrap(encrypt(spKey(), "")),
		"comment":                         answer{}.wrap(encrypt(spKey(), strings.Replace(good, ">ann<", ">a<!-- -->nn<", 1))),
		"for another":                     answer{}.wrap(encrypt(otherKey(), good)),
		"short ciphertext, GCM":           answer{}.wrap(standardEncryption.element(wrapped(t, 32), "AAAA")),
		"no ciphertext, GCM":              answer{}.wrap(standardEncryption.element(wrapped(t, 32), "")),
		"short ciphertext, CBC":           answer{}.wrap(cbc().element(wrapped(t, 16), base64.StdEncoding.EncodeToString(make([]byte, 16)))),
		"incomplete block, CBC":           answer{}.wrap(cbc().element(wrapped(t, 16), base64.StdEncoding.EncodeToString(make([]byte, 33)))),
		"wrong padding, CBC":              answer{}.wrap(cbc().element(wrapped(t, 16), base64.StdEncoding.EncodeToString(make([]byte, 64)))),
		"session key of another size":     answer{}.wrap(standardEncryption.element(wrapped(t, 16), base64.StdEncoding.EncodeToString(make([]byte, 64)))),
		"ciphertext that is not base64":   answer{}.wrap(standardEncryption.element(wrapped(t, 32), "%")),
		"wrapped key that is not base64":  answer{}.wrap(standardEncryption.element("%", "AAAA")),
		"wrapped key that is not from us": answer{}.wrap(standardEncryption.element("AAAA", "AAAA")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testProvider().Finish(testPending(), post(document), testNow)
			e := wantClass(t, err, Invalid)
			// The causes after decryption are not distinguishable.
			if e != samlprotocol.ErrDecrypt && !strings.Contains(name, " a signed assertion") {
				t.Error(e.Detail)
			}
		})
	}
}

func cbc() encryption {
	x := standardEncryption
	x.data = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
	return x
}

// wrapped returns a session key of zeros.
func wrapped(t *testing.T, size int) string {
	t.Helper()
	out, err := rsa.EncryptOAEPWithOptions(rand.Reader, spKey().Certificate.PublicKey.(*rsa.PublicKey), make([]byte, size), &rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1})
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out)
}

func TestEncryptionAlgorithms(t *testing.T) {
	key := `<xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="` + oaepWithSHA1Mask + `"/></xenc:EncryptedKey>`
	for name, tc := range map[string]struct {
		encryption
		class Class
	}{
		"triple DES":    {encryption{data: "http://www.w3.org/2001/04/xmlenc#tripledes-cbc", key: oaepWithSHA1Mask}, Invalid},
		"no algorithm":  {encryption{key: oaepWithSHA1Mask}, Invalid},
		"PKCS #1 v1.5":  {encryption{data: standardEncryption.data, key: "http://www.w3.org/2001/04/xmlenc#rsa-1_5"}, Misconfigured},
		"unknown mask":  {encryption{data: standardEncryption.data, key: oaep, mask: "urn:x"}, Misconfigured},
		"unknown hash":  {encryption{data: standardEncryption.data, key: oaep, digest: "http://www.w3.org/2001/04/xmldsig-more#md5"}, Misconfigured},
		"too many keys": {encryption{data: standardEncryption.data, key: oaep, more: strings.Repeat(key, 4)}, Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testProvider().Finish(testPending(), post(answer{}.wrap(tc.element("AAAA", "AAAA"))), testNow)
			if e := wantClass(t, err, tc.class); e == samlprotocol.ErrDecrypt {
				t.Error("an algorithm that is not accepted was tried")
			}
		})
	}
	for name, document := range map[string]string{
		"no data": `<saml:EncryptedAssertion/>`,
		"no key":  `<saml:EncryptedAssertion xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"><xenc:EncryptedData><xenc:EncryptionMethod Algorithm="` + standardEncryption.data + `"/></xenc:EncryptedData></saml:EncryptedAssertion>`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testProvider().Finish(testPending(), post(answer{}.wrap(document)), testNow)
			wantClass(t, err, Invalid)
		})
	}
	p := testProvider()
	p.Keys = []Key{samltest.ECDSA(elliptic.P256())}
	_, err := p.Finish(testPending(), post(answer{}.wrap(encrypt(spKey(), "x"))), testNow)
	wantClass(t, err, Misconfigured)
}
