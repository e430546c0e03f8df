package jwks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwk"
)

var algs = []string{"RS256", "PS256", "ES256", "EdDSA"}

// jwkOf returns a new key of a curve as a JWK, with other members.
func jwkOf(t testing.TB, curve elliptic.Curve, members map[string]any) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := jwk.Import(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if err := imported.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(imported)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParse(t *testing.T) {
	p256 := jwkOf(t, elliptic.P256(), nil)
	with := func(members string) string { return strings.Replace(p256, "{", "{"+members+",", 1) }
	for text, problem := range map[string]string{
		p256:                       "",
		with(`"kid":"a"`):          "",
		with(`"alg":"ES256"`):      "",
		with(`"use":"sig"`):        "",
		with(`"x5c":[]`):           "",
		with(`"key_ops":["sign"]`): "verifying",
		with(`"use":"enc"`):        "verifying",
		with(`"alg":"RS256"`):      "type or an alg",
		with(`"d":"AAAA"`):         "private",
		with(`"k":"AAAA"`):         "private",
		with(fmt.Sprintf(`"kid":%q`, strings.Repeat("a", maxID+1))): "not a JWK",
		jwkOf(t, elliptic.P384(), nil):                              "type or an alg",
		`{"kty":"AKP"}`:                                             "type RSA, EC or OKP",
		`7`:                                                         "not a JWK",
	} {
		k, err := Parse([]byte(text), algs)
		if problem == "" && (err != nil || len(k.Algs) != 1 || k.Public == nil) {
			t.Errorf("%s: %+v, %v", text, k, err)
		}
		if problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := algorithms(p224.Public()); got != nil {
		t.Errorf("P-224: %v", got)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := algorithms(short.Public()); err == nil || !strings.Contains(err.Error(), "2048 to 8192") {
		t.Errorf("a short RSA key: %v", err)
	}
}

func TestChoose(t *testing.T) {
	set := func(ids ...string) Set {
		var keys []string
		for _, id := range ids {
			keys = append(keys, jwkOf(t, elliptic.P256(), map[string]any{"kid": id}))
		}
		return Usable([]byte(`{"keys":[`+strings.Join(keys, ",")+`,{"kty":"AKP"}]}`), algs, 3)
	}
	if n := len(set("a", "b", "c", "d")); n != 3 {
		t.Errorf("%d keys, want 3", n)
	}
	for name, test := range map[string]struct {
		keys    Set
		id, alg string
		want    error
	}{
		"by id":          {set("a", "b"), "b", "ES256", nil},
		"only one":       {set("a"), "", "ES256", nil},
		"unknown":        {set("a"), "b", "ES256", ErrUnknown},
		"none for alg":   {set("a"), "", "RS256", ErrUnknown},
		"another alg":    {set("a"), "a", "RS256", ErrAlgorithm},
		"several":        {set("a", "b"), "", "ES256", ErrSeveral},
		"the same twice": {set("a", "a"), "a", "ES256", ErrSeveral},
	} {
		k, err := test.keys.Choose(test.id, test.alg)
		if !errors.Is(err, test.want) || err == nil && test.id != "" && k.ID != test.id {
			t.Errorf("%s: %q, %v, want %v", name, k.ID, err, test.want)
		}
	}
}

// FuzzUsable has any key set.
func FuzzUsable(f *testing.F) {
	f.Add([]byte(`{"keys":[` + jwkOf(f, elliptic.P256(), map[string]any{"use": "sig"}) + `]}`))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, set []byte) {
		for _, k := range Usable(set, algs, 10) {
			if len(k.Algs) == 0 || k.Public == nil {
				t.Errorf("%+v", k)
			}
		}
	})
}
