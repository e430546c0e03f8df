package bench

import (
	"encoding/json"
	"net"
	"net/http"
)

// ServeEcho answers every POST as the fastest possible endpoint would: it decodes a JSON
// object, or a form, and encodes an object. Its figures are the floor for every figure over
// HTTP.
func ServeEcho(l net.Listener) error {
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var check wireCheck
		if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
			if err := r.ParseForm(); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		} else if err := json.NewDecoder(r.Body).Decode(&check); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var answer struct {
			Data struct {
				Allowed bool `json:"allowed"`
			} `json:"data"`
			Meta struct{} `json:"meta"`
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(http.ErrAbortHandler) // the client has closed the connection
		}
	}))
}

const echoName = "echo"

// echoing returns the meter of an echo server that gets the requests of the HTTP target,
// including its bearer token.
func echoing(url string, h *HTTP, w Workload, workers int) *meter {
	return checking(newHTTP(url, h.token, workers), w, workers, func(f *Figure) {
		f.Target = echoName
	})
}
