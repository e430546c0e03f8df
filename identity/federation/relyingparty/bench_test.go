package relyingparty

import (
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"stonetown/internal/jwks"
	"stonetown/internal/outbound"
)

// BenchmarkFinish completes sign-ins at a provider in the same process, which signs the token and
// answers two requests for each: most of the time is that of its signature. BenchmarkSignature is the
// verification alone.
func BenchmarkFinish(b *testing.B) {
	for name, of := range algorithms {
		b.Run(name, func(b *testing.B) {
			p := newProvider(b)
			p.key, p.alg = of.key, of.alg
			client := outbound.New(outbound.Config{AllowInsecure: true, KeepAlive: true})
			b.Cleanup(client.Close)
			s, err := New(Config{Client: client, Clock: p.clock.Now})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				pending, params := p.begin(s, p.discovered(), Request{})
				if _, err := s.Finish(b.Context(), p.discovered(), pending, params); err != nil {
					b.Fatal(detail(err))
				}
			}
		})
	}
}

func BenchmarkSignature(b *testing.B) {
	for name, of := range algorithms {
		b.Run(name, func(b *testing.B) {
			keys := jwks.Usable(asText(b, object{"keys": []object{public(b, of.key, nil)}}), Algorithms, maxKeys)
			token := sign(b, of.alg, signers()[of.key], object{"kid": of.key}, object{"iss": "https://op.example", "sub": "1", "aud": clientID, "nonce": "n", "email": "ann@example.com"})
			for b.Loop() {
				if _, err := open(keys, token, Algorithms, []string{""}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var algorithms = map[string]struct {
	key string
	alg jwa.SignatureAlgorithm
}{"ES256": {"p256", jwa.ES256()}, "RS256": {"rsa", jwa.RS256()}}
