package session

import (
	"fmt"
	"testing"
	"time"

	"stonetown/internal/sqldb"
)

// recognize signs a user in on a device, and returns whether it and other devices are known.
func recognize(t testing.TB, s *Store, user, agent string) string {
	t.Helper()
	var known, others bool
	err := s.db.Tx(t.Context(), func(tx *sqldb.Tx) (err error) {
		var b sqldb.Batch
		known, others, err = s.Recognize(t.Context(), tx, &b, Session{TenantID: "tnt_a", UserID: user, Device: Device{UserAgent: agent}})
		if err != nil {
			return err
		}
		return tx.Send(t.Context(), &b)
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("known %t, others %t", known, others)
}

const (
	onlyThis = "known true, others false"
	both     = "known true, others true"
	theFirst = "known false, others false"
	another  = "known false, others true"
)

func TestDevicesAreKnown(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			s, later := open(t, url(t))
			want := func(user, agent, want string) {
				t.Helper()
				if got := recognize(t, s, user, agent); got != want {
					t.Errorf("%s on %q: %s, want %s", user, agent, got, want)
				}
				later(time.Second)
			}
			want("usr_a", "Phone/1.0", theFirst)
			want("usr_a", "Phone/1.0", onlyThis)
			want("usr_a", "Phone/2.3.1", onlyThis) // a new version
			want("usr_a", "Desktop", another)
			want("usr_a", "Phone/2.3.1", both)
			want("usr_b", "Phone/1.0", theFirst)

			later(KnownFor - time.Minute)
			want("usr_a", "Phone/1.0", both)
			later(time.Minute)
			want("usr_a", "Desktop", another) // KnownFor has passed
			later(KnownFor)
			if err := s.DeleteForgotten(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := devices(t, s, ""); n != 0 {
				t.Errorf("%d devices are left", n)
			}

			for i := range MostDevices + 5 {
				want("usr_a", fmt.Sprint("Device ", i), map[bool]string{true: theFirst, false: another}[i == 0])
			}
			if n := devices(t, s, "usr_a"); n != MostDevices {
				t.Errorf("%d devices are known", n)
			}
			want("usr_a", "Device 4", another) // was replaced; now replaces 5
			want("usr_a", "Device 6", both)
			want("usr_a", "Device 5", another)

			want("usr_b", "Phone", theFirst)
			var b sqldb.Batch
			ForgetDevices(&b, "tnt_a", "usr_a")
			if err := s.db.Tx(t.Context(), func(tx *sqldb.Tx) error { return tx.Send(t.Context(), &b) }); err != nil {
				t.Fatal(err)
			}
			if a, b := devices(t, s, "usr_a"), devices(t, s, "usr_b"); a != 0 || b != 1 {
				t.Errorf("%d and %d devices are left", a, b)
			}
		})
	}
}

// devices counts the known devices of a user; of all users if it is empty.
func devices(t testing.TB, s *Store, user string) (n int64) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM known_devices WHERE user_id = $1 OR $1 = ''`, user).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFingerprint(t *testing.T) {
	same := func(a, b string) bool {
		return Device{UserAgent: a}.Fingerprint() == Device{UserAgent: b}.Fingerprint()
	}
	for old, updated := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/148.0.0.0 Safari/537.36": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/151.0.7000.12 Safari/537.36",
		"Mozilla/5.0 (X11; Linux x86_64; rv:148.0) Gecko/20100101 Firefox/148.0":            "Mozilla/5.0 (X11; Linux x86_64; rv:149.0) Gecko/20100101 Firefox/149.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148":              "Mozilla/5.0 (iPhone; CPU iPhone OS 26_1_1 like Mac OS X) Mobile/15E148",
	} {
		if !same(old, updated) {
			t.Errorf("an update makes another device: %s", updated)
		}
	}
	for a, b := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) Chrome/148.0.0.0 Safari/537.36": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/148.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/148.0":          "Mozilla/5.0 (Linux; Android 15; Pixel 8) Chrome/148.0",
		"curl/8.0": "",
	} {
		if same(a, b) {
			t.Errorf("%q and %q are the same", a, b)
		}
	}
}
