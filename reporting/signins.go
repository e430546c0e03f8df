package reporting

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
)

// failedMethods are the methods of failures by their reasons (RFC 8176 §2).
var failedMethods = map[string]string{"invalid_credentials": "pwd", "wrong_totp": "otp", "wrong_sms": "sms", "wrong_webauthn": "hwk"}

// signIns counts sign-ins for each day and method. The method of a sign-in is the list of its
// authentication methods (RFC 8176) without mfa, which only says that there are several; that of a
// failure is the step that failed.
func (p *production) signIns(ctx context.Context) error {
	type key struct{ day, method string }
	type count struct {
		signIns, failures int
		users             map[string]bool
	}
	now := p.now()
	since := time.Date(now.Year(), now.Month(), now.Day()+1-p.run.Parameters.Days, 0, 0, 0, 0, time.UTC)
	counts, users := map[key]*count{}, map[string]bool{}
	total, failures := 0, 0
	methods := map[string]int{}
	read, before := 0, int64(0)
	for {
		if read >= MaxEvents {
			p.truncated = true
			break
		}
		events, err := p.events.Before(ctx, p.run.TenantID, before, min(MaxEvents-read, eventlog.MaxPage))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		read += len(events)
		for _, e := range events {
			before = e.Position
			if e.Type != eventlog.UserSignedIn && e.Type != eventlog.UserSignInFailed || e.At.Before(since) {
				continue
			}
			var data struct {
				User    *struct{ ID string }
				Methods []string `json:"amr"`
				Reason  string
			}
			if err := json.Unmarshal(e.Data, &data); err != nil {
				return fmt.Errorf("event %s: %w", e.ID, err)
			}
			k := key{e.At.UTC().Format(time.DateOnly), cmp.Or(failedMethods[data.Reason], data.Reason, "unknown")}
			if e.Type == eventlog.UserSignedIn {
				k.method = cmp.Or(strings.Join(slices.DeleteFunc(data.Methods, func(m string) bool { return m == "mfa" }), "+"), "unknown")
			}
			c := counts[k]
			if c == nil {
				c = &count{users: map[string]bool{}}
				counts[k] = c
			}
			if e.Type == eventlog.UserSignInFailed {
				c.failures++
				failures++
				continue
			}
			c.signIns++
			total++
			methods[k.method]++
			if data.User != nil {
				c.users[data.User.ID], users[data.User.ID] = true, true
			}
		}
		// Clocks of processes differ, so an older event may follow a newer one, but not a whole page of them.
		if events[0].At.Before(since) {
			break
		}
	}
	p.figure("sign_ins", "", total)
	p.figure("failures", "", failures)
	p.figure("users", "", len(users))
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		p.figure("sign_ins", method, methods[method])
	}
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(strings.Compare(a.day, b.day), strings.Compare(a.method, b.method))
	}) {
		c := counts[k]
		if err := p.add(ctx, k.day, k.method, c.signIns, c.failures, len(c.users)); err != nil {
			return err
		}
	}
	return nil
}
