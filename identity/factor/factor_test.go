package factor

import (
	"errors"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// A code is valid one step before and after its own, and never at or before the latest accepted
// step.
func TestSteps(t *testing.T) {
	key, err := NewKey("Example", "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 12, 0, 15, 0, time.UTC)
	current := now.Unix() / totpPeriod
	for shift := int64(-3); shift <= 3; shift++ {
		code, err := totp.GenerateCode(key.Secret, now.Add(time.Duration(shift)*totpPeriod*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []int64{0, current - 1, current, current + 1} {
			want := shift >= -totpSkew && shift <= totpSkew && current+shift > after
			n, err := step(key.Secret, code, now, after)
			if (err == nil) != want || want && n != current+shift || !want && !errors.Is(err, ErrWrong) {
				t.Errorf("a code %d steps off after %d: step %d, %v", shift, after-current, n-current, err)
			}
		}
	}
	for _, code := range []string{"", "12345", "1234567", "abcdef", "１２３４５６"} {
		if _, err := step(key.Secret, code, now, 0); !errors.Is(err, ErrWrong) {
			t.Errorf("%q: %v", code, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for number, want := range map[string]bool{
		"+4930123456": true, "+15551234567": true, "+1234567": true, "+123456789012345": true,
		"+1234567890123456": false, "+123456": false, "4930123456": false, "+0301234567": false, "+49 30 123456": false, "": false, "+4930123456\n": false,
	} {
		if ValidNumber(number) != want {
			t.Errorf("%q: %v", number, !want)
		}
	}
	if got := Masked("+4930123456"); got != "+49••••••56" {
		t.Error(got)
	}
}
