package samlprotocol

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // OAEP, where it is sound
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"

	"github.com/beevik/etree"

	"stonetown/internal/text"
)

// The algorithms of XML Encryption 1.1 that are accepted: RSA-OAEP, and AES. PKCS #1 v1.5 and
// triple DES are not. AES-CBC does not authenticate, but many providers use it; its
// plaintext is used only after the verification of the signature in it.
var (
	keySizes = map[string]int{ // bytes
		"http://www.w3.org/2009/xmlenc11#aes128-gcm":  16,
		"http://www.w3.org/2009/xmlenc11#aes192-gcm":  24,
		"http://www.w3.org/2009/xmlenc11#aes256-gcm":  32,
		"http://www.w3.org/2001/04/xmlenc#aes128-cbc": 16,
		"http://www.w3.org/2001/04/xmlenc#aes192-cbc": 24,
		"http://www.w3.org/2001/04/xmlenc#aes256-cbc": 32,
	}
	authenticated = map[string]bool{
		"http://www.w3.org/2009/xmlenc11#aes128-gcm": true,
		"http://www.w3.org/2009/xmlenc11#aes192-gcm": true,
		"http://www.w3.org/2009/xmlenc11#aes256-gcm": true,
	}
	oaepHashes = map[string]crypto.Hash{
		"":                                       crypto.SHA1, // the default
		"http://www.w3.org/2000/09/xmldsig#sha1": crypto.SHA1,
		"http://www.w3.org/2001/04/xmlenc#sha256":       crypto.SHA256,
		"http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384,
		"http://www.w3.org/2001/04/xmlenc#sha512":       crypto.SHA512,
	}
	oaepMasks = map[string]crypto.Hash{
		"": crypto.SHA1, // the default
		"http://www.w3.org/2009/xmlenc11#mgf1sha1":   crypto.SHA1,
		"http://www.w3.org/2009/xmlenc11#mgf1sha256": crypto.SHA256,
		"http://www.w3.org/2009/xmlenc11#mgf1sha384": crypto.SHA384,
		"http://www.w3.org/2009/xmlenc11#mgf1sha512": crypto.SHA512,
	}
)

const (
	oaepWithSHA1Mask = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"
	oaep             = "http://www.w3.org/2009/xmlenc11#rsa-oaep"

	maxEncryptedKeys = 4 // an RSA operation for each, and for each own key
)

// encrypted is EncryptedAssertion (SAML Core §2.3.4), or the same with another name.
type encrypted struct {
	Data []encryptedData `xml:"http://www.w3.org/2001/04/xmlenc# EncryptedData"`
	Keys []encryptedKey  `xml:"http://www.w3.org/2001/04/xmlenc# EncryptedKey"`
}

type encryptedData struct {
	Method algorithm `xml:"http://www.w3.org/2001/04/xmlenc# EncryptionMethod"`
	Info   struct {
		Keys []encryptedKey `xml:"http://www.w3.org/2001/04/xmlenc# EncryptedKey"`
	} `xml:"http://www.w3.org/2000/09/xmldsig# KeyInfo"`
	Value string `xml:"http://www.w3.org/2001/04/xmlenc# CipherData>CipherValue"`
}

type encryptedKey struct {
	Method struct {
		Name   string    `xml:"Algorithm,attr"`
		Digest algorithm `xml:"http://www.w3.org/2000/09/xmldsig# DigestMethod"`
		Mask   algorithm `xml:"http://www.w3.org/2009/xmlenc11# MGF"`
	} `xml:"http://www.w3.org/2001/04/xmlenc# EncryptionMethod"`
	Value string `xml:"http://www.w3.org/2001/04/xmlenc# CipherData>CipherValue"`
}

// ErrDecrypt is the one error after decryption began. The cause would help to decrypt an assertion
// that was intercepted, by changed copies of it (a padding oracle): it must not be distinguishable
// whether the padding, the XML or the signature is wrong.
var ErrDecrypt = Refused("the encrypted assertion cannot be decrypted, or has no valid signature in it")

// Decrypt returns the plaintext of an encrypted element, with any of the keys that are RSA. Its
// content is not authenticated.
func Decrypt(e *etree.Element, own []Key) ([]byte, error) {
	var x encrypted
	document, err := Write(Detach(e))
	if err != nil || xml.Unmarshal(document, &x) != nil || len(x.Data) != 1 {
		return nil, Refused("the encrypted element does not have one EncryptedData")
	}
	data := x.Data[0]
	size := keySizes[data.Method.Name]
	if size == 0 {
		return nil, Refused("the algorithm of encryption is not accepted: %s", text.Quote(data.Method.Name))
	}
	keys := append(data.Info.Keys, x.Keys...)
	if len(keys) == 0 || len(keys) > maxEncryptedKeys {
		return nil, Refused("the encrypted element has no EncryptedKey, or more than %d", maxEncryptedKeys)
	}
	tried := false
	for _, k := range keys {
		options, ok := k.options()
		if !ok {
			continue
		}
		for _, pair := range own {
			decrypter, ok := pair.Private.(crypto.Decrypter)
			if _, isRSA := pair.Private.Public().(*rsa.PublicKey); !ok || !isRSA {
				continue
			}
			tried = true
			if plain, ok := open(decrypter, options, k, data, size); ok {
				return plain, nil
			}
		}
	}
	if !tried {
		return nil, Failed(Misconfigured, "an assertion is encrypted, but there is no key for it, or the algorithm of its EncryptedKey is not accepted")
	}
	return nil, ErrDecrypt
}

// options returns the parameters of RSA-OAEP.
func (k encryptedKey) options() (*rsa.OAEPOptions, bool) {
	hash, mask := oaepHashes[k.Method.Digest.Name], oaepMasks[k.Method.Mask.Name]
	if k.Method.Name == oaepWithSHA1Mask {
		mask = crypto.SHA1
	} else if k.Method.Name != oaep {
		return nil, false
	}
	return &rsa.OAEPOptions{Hash: hash, MGFHash: mask}, hash != 0 && mask != 0
}

// open decrypts a key, and data with it.
func open(own crypto.Decrypter, options *rsa.OAEPOptions, k encryptedKey, data encryptedData, size int) ([]byte, bool) {
	wrapped, err := decodeBase64(k.Value)
	if err != nil {
		return nil, false
	}
	key, err := own.Decrypt(nil, wrapped, options)
	if err != nil || len(key) != size {
		return nil, false
	}
	sealed, err := decodeBase64(data.Value)
	if err != nil {
		return nil, false
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, false
	}
	if authenticated[data.Method.Name] {
		return openGCM(block, sealed)
	}
	return openCBC(block, sealed)
}

// openGCM decrypts a nonce of 96 bits, followed by the ciphertext with its tag (XML Encryption 1.1
// §5.2.4).
func openGCM(block cipher.Block, sealed []byte) ([]byte, bool) {
	gcm, err := cipher.NewGCM(block)
	if err != nil || len(sealed) < gcm.NonceSize() {
		return nil, false
	}
	plain, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], nil)
	return plain, err == nil
}

// openCBC decrypts a block of initialization, followed by the ciphertext, and removes its padding:
// the last byte is its length, and the others are arbitrary (XML Encryption 1.1 §5.2.2).
func openCBC(block cipher.Block, sealed []byte) ([]byte, bool) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, false
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, false
	}
	return plain[:len(plain)-padding], true
}

// The algorithms of [Encrypt]: authenticated encryption, and the form of RSA-OAEP that all
// implementations have.
const (
	encryptsData = "http://www.w3.org/2009/xmlenc11#aes256-gcm"
	encryptsKey  = oaepWithSHA1Mask
	sha1Digest   = "http://www.w3.org/2000/09/xmldsig#sha1"
)

// Encrypt encrypts an assertion for the RSA key of a certificate, and returns its EncryptedAssertion
// (SAML Core §2.3.4). The assertion must be signed before, because anybody can encrypt.
func Encrypt(assertion *etree.Element, to *x509.Certificate) (*etree.Element, error) {
	public, ok := to.PublicKey.(*rsa.PublicKey)
	if !ok || public.N.BitLen() < MinRSA {
		return nil, Failed(Misconfigured, "the certificate of the other side has no RSA key of at least %d bits to encrypt for", MinRSA)
	}
	plain, err := Write(assertion)
	if err != nil {
		return nil, err
	}
	key := make([]byte, keySizes[encryptsData])
	_, _ = rand.Read(key)
	wrapped, err := rsa.EncryptOAEPWithOptions(rand.Reader, public, key, &rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1})
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block) // before the ciphertext, as XML Encryption has it
	if err != nil {
		return nil, err
	}
	sealed := gcm.Seal(nil, nil, plain, nil)

	e := etree.NewElement("saml:EncryptedAssertion")
	e.CreateAttr("xmlns:saml", AssertionNS)
	data := e.CreateElement("xenc:EncryptedData")
	data.CreateAttr("xmlns:xenc", EncryptionNS)
	data.CreateAttr("Type", "http://www.w3.org/2001/04/xmlenc#Element")
	data.CreateElement("xenc:EncryptionMethod").CreateAttr("Algorithm", encryptsData)
	info := data.CreateElement("ds:KeyInfo")
	info.CreateAttr("xmlns:ds", SignatureNS)
	encryptedKey := info.CreateElement("xenc:EncryptedKey")
	method := encryptedKey.CreateElement("xenc:EncryptionMethod")
	method.CreateAttr("Algorithm", encryptsKey)
	method.CreateElement("ds:DigestMethod").CreateAttr("Algorithm", sha1Digest)
	addCipherValue(encryptedKey, wrapped)
	addCipherValue(data, sealed)
	return e, nil
}

func addCipherValue(e *etree.Element, value []byte) {
	e.CreateElement("xenc:CipherData").CreateElement("xenc:CipherValue").SetText(base64.StdEncoding.EncodeToString(value))
}
