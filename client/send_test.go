package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A busy server gets the request again after its Retry-After, with the same key.
func TestRetryBusy(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{t: t}
			s.handle = func(w http.ResponseWriter, r *http.Request) {
				decode(t, r) // every attempt has the body
				if len(s.requests) < 4 {
					w.Header().Set("Retry-After", "7")
					refuse(w, status, "busy", nil)
					return
				}
				w.WriteHeader(http.StatusCreated)
				answer(w, "{}")
			}
			began := time.Now()
			created, err := s.client(time.Minute).CreateRelation(t.Context(), ann)
			if err != nil || !created || len(s.requests) != 4 {
				t.Fatalf("%v, %v after %d requests", created, err, len(s.requests))
			}
			if waited := time.Since(began); waited < 21*time.Second || waited > 28*time.Second {
				t.Errorf("waited %v", waited)
			}
			for _, r := range s.requests {
				if len(r.key) < 20 || r.key != s.requests[0].key {
					t.Errorf("keys %q and %q", r.key, s.requests[0].key)
				}
			}
			if _, err := s.client(time.Minute).CreateRelation(t.Context(), ann); err != nil || s.requests[4].key == s.requests[0].key {
				t.Errorf("another write has the key of the first: %v", err)
			}
		})
	}
}

// Without a Retry-After the pauses grow.
func TestRetryBusyWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "service_unavailable", nil) }}
		began := time.Now()
		_, err := s.client(15*time.Second).Check(t.Context(), Question{})
		contains(t, err, "because", "service_unavailable", "req_1")
		if waited := time.Since(began); waited > 15*time.Second || waited < 5*time.Second || len(s.requests) < 5 || len(s.requests) > 12 {
			t.Errorf("%d requests in %v", len(s.requests), waited)
		}
		if s.requests[0].key != "" {
			t.Error("a question has a key")
		}
	})
}

// A pause that ends after patience is not begun.
func TestRetryTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			refuse(w, 429, "rate_limited", nil)
		}}
		began := time.Now()
		_, err := s.client(time.Minute).Check(t.Context(), Question{})
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Code != "rate_limited" || refused.Status != 429 || len(s.requests) != 1 || time.Since(began) != 0 {
			t.Errorf("%v after %d requests in %v", err, len(s.requests), time.Since(began))
		}
	})
}

// A request that the network lost is sent again, a few times.
func TestRetryLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		losses := 2
		s := &server{t: t}
		s.handle = func(w http.ResponseWriter, _ *http.Request) {
			if losses > 0 {
				losses--
				panic(http.ErrAbortHandler)
			}
			if s.requests[len(s.requests)-2].key != "" && losses == 0 {
				losses-- // the lost request may still be in progress
				w.Header().Set("Retry-After", "1")
				refuse(w, 409, "idempotency_in_progress", nil)
				return
			}
			answer(w, "{}")
		}
		c := s.client(0)
		if _, err := c.CreateRelation(t.Context(), ann); err != nil || len(s.requests) != 4 || s.requests[0].key != s.requests[3].key {
			t.Errorf("%v, %+v", err, s.requests)
		}
		losses, s.requests = 2, nil
		if _, err := c.Check(t.Context(), Question{}); err != nil || len(s.requests) != 3 {
			t.Errorf("%v after %d requests", err, len(s.requests))
		}
		losses, s.requests = 99, nil
		_, err := c.Type(t.Context(), "document")
		contains(t, err, "connection reset")
		if len(s.requests) != 1+maxUnheard {
			t.Errorf("%d requests", len(s.requests))
		}
	})
}

// Refusals are final.
func TestNoRetry(t *testing.T) {
	for _, status := range []int{400, 403, 404, 409, 422, 500} {
		s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, "no", map[string]any{"a": "b"}) }}
		_, err := s.client(0).CreateRelation(t.Context(), ann)
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Status != status || refused.Code != "no" || refused.Message != "because" || refused.RequestID != "req_1" || refused.Details["a"] != "b" || len(s.requests) != 1 {
			t.Errorf("%d: %+v after %d requests", status, refused, len(s.requests))
		}
	}
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "10")
			refuse(w, 429, "rate_limited", nil)
		}}
		began := time.Now()
		_, err := s.client(time.Minute).Check(ctx, Question{})
		contains(t, err, "rate_limited") // it has more information than that the time is over
		if time.Since(began) != 3*time.Second {
			t.Errorf("ended after %v", time.Since(began))
		}
	})
}

// A response that is not from Stonetown is an error that states this.
func TestStrangers(t *testing.T) {
	for text, word := range map[string]string{"": "not from Stonetown", "<html>": "not from Stonetown", "{}": "not from Stonetown", `{"data":3}`: "decode"} {
		s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }}
		_, err := s.client(0).Check(t.Context(), Question{})
		contains(t, err, word)
	}
	s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>bad gateway", http.StatusBadGateway)
	}}
	_, err := s.client(0).Check(t.Context(), Question{})
	contains(t, err, "502 Bad Gateway")
}

// Tokens are used until shortly before they expire, and replaced if the server refuses them.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := ""
		s := &server{t: t}
		s.handle = func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == bad {
				refuse(w, 401, "invalid_token", nil)
				return
			}
			answer(w, `{"allowed":true}`)
		}
		c := s.client(0)
		ask := func(want int) {
			t.Helper()
			if _, err := c.Check(t.Context(), Question{}); err != nil || s.tokens != want {
				t.Fatalf("%v with %d tokens, want %d", err, s.tokens, want)
			}
		}
		ask(1)
		time.Sleep(9 * time.Minute)
		ask(1)
		time.Sleep(59 * time.Second)
		ask(2)
		bad = "Bearer token-2"
		ask(3)

		// The client does not repeat this for ever.
		s.handle = func(w http.ResponseWriter, _ *http.Request) { refuse(w, 401, "invalid_token", nil) }
		_, err := c.Check(t.Context(), Question{})
		contains(t, err, "invalid_token")
		if s.tokens != 4 {
			t.Errorf("%d tokens", s.tokens)
		}
	})
}

func TestTokenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, handle: func(w http.ResponseWriter, _ *http.Request) { answer(w, `{"allowed":true}`) }}
		json := http.Header{"Content-Type": {"application/json"}}
		s.token = func() (int, http.Header, string) {
			return 401, json, `{"error":"invalid_client","error_description":"no","message":"no","details":{},"request_id":"req_9"}`
		}
		_, err := s.client(0).Check(t.Context(), Question{})
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Code != "invalid_client" || refused.Status != 401 || refused.RequestID != "req_9" || len(s.requests) != 0 {
			t.Errorf("%v", err)
		}
		contains(t, err, "access token")

		// A request for a token is repeated like other requests.
		times := 0
		s.token = func() (int, http.Header, string) {
			if times++; times < 3 {
				return 429, http.Header{"Retry-After": {"2"}, "Content-Type": {"application/json"}}, `{"error":"rate_limited","message":"slowly"}`
			}
			return 0, nil, ""
		}
		if _, err := s.client(0).Check(t.Context(), Question{}); err != nil || times != 3 {
			t.Errorf("%v after %d", err, times)
		}

		s.token = func() (int, http.Header, string) { return 200, json, `{"access":"s3cret"}` }
		_, err = s.client(0).Check(t.Context(), Question{})
		contains(t, err, "missing access_token")
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("it quotes the answer: %v", err)
		}
	})
}
