package authn

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"

	"stonetown/identity"
	"stonetown/identity/onetime"
	"stonetown/internal/eventlog"
	"stonetown/internal/outbox"
	"stonetown/internal/post"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

// The kinds of jobs. A letter's link is made when the letter is sent: until then no
// secret is kept anywhere, not even encrypted.
const (
	jobSignUp    = "sign_up"
	jobText      = "text"
	letterVerify = "letter.verify"
	letterReset  = "letter.reset"
	letterChange = "letter.change"
	letterNotice = "letter.notice"
	letterSignIn = "letter.sign_in"
	jobPassword  = "password"
)

type (
	// verifyLetter and resetLetter go to a user, or to an address that may be nobody's.
	verifyLetter struct {
		UserID string `json:"user_id,omitzero"`
		Email  string `json:"email,omitzero"`
		Then   string `json:"then,omitzero"` // the path that the link leads on to
	}
	resetLetter struct {
		UserID string          `json:"user_id,omitzero"`
		Email  string          `json:"email,omitzero"`
		Then   string          `json:"then,omitzero"`
		Origin eventlog.Origin `json:"origin,omitzero"` // of who asked for it
	}
	changeLetter struct {
		UserID string `json:"user_id"`
		Change string `json:"change"`
		Email  string `json:"email"`
	}
	// notice tells a user that something has happened.
	notice struct {
		UserID string `json:"user_id"`
		What   string `json:"what"`
	}
	// signInLetter tells of a sign-in on a device that is new.
	signInLetter struct {
		UserID     string    `json:"user_id"`
		DeviceKind string    `json:"device_kind"`
		IP         string    `json:"ip"`
		At         time.Time `json:"at"`
	}
	textJob struct {
		Number string `json:"number"`
		Code   string `json:"code"`
	}
)

// What users are told has happened.
const (
	passwordChanged  = "password_changed"
	passwordBreached = "password_breached"
	factorAdded      = "factor_added"
	factorRemoved    = "factor_removed"
	identityAdded    = "identity_added"
	identityRemoved  = "identity_removed"
)

func (s *Service) notify(b *sqldb.Batch, tenantID, kind string, n notice) {
	s.outbox.Queue(b, tenantID, kind, n)
}

// work does a job of the outbox.
func (s *Service) work(ctx context.Context, job outbox.Job) error {
	err := s.dispatch(ctx, job)
	if errors.Is(err, post.ErrRefused) || errors.Is(err, identity.ErrUserNotFound) {
		err = errors.Join(err, outbox.ErrDrop)
	}
	return err
}

func (s *Service) dispatch(ctx context.Context, job outbox.Job) error {
	switch job.Kind {
	case jobSignUp:
		var j signUpJob
		if err := job.Read(&j); err != nil {
			return err
		}
		return s.signUp(ctx, job.TenantID, j)
	case jobText:
		var j textJob
		if err := job.Read(&j); err != nil {
			return err
		}
		return s.sendText(ctx, job, j)
	case letterVerify:
		var l verifyLetter
		if err := job.Read(&l); err != nil {
			return err
		}
		u, err := s.addressee(ctx, job.TenantID, l.UserID, l.Email)
		if err != nil || u.ID == "" || u.EmailVerified {
			return err
		}
		return s.sendLink(ctx, u, u.Email, "verify_email", "/auth/verify-email", l.Then, onetime.New{Kind: kindVerify, Payload: addressed{Email: u.Email}, For: verifyFor})
	case letterReset:
		var l resetLetter
		if err := job.Read(&l); err != nil {
			return err
		}
		u, err := s.addressee(ctx, job.TenantID, l.UserID, l.Email)
		if err != nil || u.ID == "" || u.State == identity.Disabled {
			return err
		}
		if l.Email != "" {
			if err := s.note(ctx, u.TenantID, passwordResetRequested(from(ctx, l.Origin), u)); err != nil {
				return err
			}
		}
		return s.sendLink(ctx, u, u.Email, "reset_password", "/auth/reset-password", l.Then, onetime.New{Kind: kindReset, Payload: proof{}, For: resetFor})
	case letterChange:
		var l changeLetter
		if err := job.Read(&l); err != nil {
			return err
		}
		return s.sendChange(ctx, job.TenantID, l)
	case letterNotice:
		var n notice
		if err := job.Read(&n); err != nil {
			return err
		}
		u, err := s.users.User(ctx, job.TenantID, n.UserID)
		if err != nil {
			return err
		}
		link := "/account"
		if n.What == passwordBreached {
			link = "/account/password"
		}
		return s.send(ctx, job.TenantID, u, n.What, letterData{Link: link})
	case letterSignIn:
		var l signInLetter
		if err := job.Read(&l); err != nil {
			return err
		}
		return s.sendSignIn(ctx, job, l)
	case jobPassword:
		var j passwordJob
		if err := job.Read(&j); err != nil {
			return err
		}
		return s.checkPassword(ctx, job.TenantID, j)
	}
	if do := s.others[job.Kind]; do != nil {
		return do(ctx, job)
	}
	return fmt.Errorf("unknown job %q: %w", job.Kind, outbox.ErrDrop)
}

// addressee finds the user that a letter goes to; none if an address is nobody's.
func (s *Service) addressee(ctx context.Context, tenantID, userID, email string) (u identity.User, err error) {
	if userID != "" {
		return s.users.User(ctx, tenantID, userID)
	}
	if u, err = s.users.UserByEmail(ctx, tenantID, email); errors.Is(err, identity.ErrUserNotFound) {
		return identity.User{}, nil
	}
	return u, err
}

// sendChange sends both letters of a change of address.
func (s *Service) sendChange(ctx context.Context, tenantID string, l changeLetter) error {
	u, err := s.users.User(ctx, tenantID, l.UserID)
	if err != nil {
		return err
	}
	change, _, err := s.selectChange(ctx, s.db, tenantID, u.ID, l.Change)
	if err != nil {
		return errors.Join(err, outbox.ErrDrop)
	}
	owner, err := s.users.UserByEmail(ctx, tenantID, l.Email)
	switch {
	case err == nil && owner.ID != u.ID:
		return s.send(ctx, tenantID, owner, "address_wanted", letterData{Link: "/account"})
	case err != nil && !errors.Is(err, identity.ErrUserNotFound):
		return err
	}
	err = s.sendLink(ctx, u, u.Email, "email_changing", "/auth/revert-email", "",
		onetime.New{Kind: kindRevert, Payload: addressed{Email: u.Email, Change: l.Change, Since: change.since}, For: revertFor})
	if err != nil {
		return err
	}
	return s.sendLink(ctx, u, l.Email, "change_email", "/auth/verify-email", "",
		onetime.New{Kind: kindChange, Payload: addressed{Email: l.Email, Change: l.Change}, For: verifyFor})
}

// signInLetters are how many a user gets: who has the password and calls the device something
// else each time shall not fill the mailbox.
var signInLetters = ratelimit.Limit{Requests: 10, Window: time.Hour}

// sendSignIn tells a user of a sign-in on a new device. What the device calls itself is not
// repeated, for it may say anything.
func (s *Service) sendSignIn(ctx context.Context, job outbox.Job, l signInLetter) error {
	u, err := s.users.User(ctx, job.TenantID, l.UserID)
	if err != nil {
		return err
	}
	if job.Attempt == 1 {
		if err := s.limit(ctx, job.TenantID, "sign_in_letter", u.ID, signInLetters); err != nil {
			return errors.Join(err, outbox.ErrDrop)
		}
	}
	place := s.places.Find(l.IP)
	return s.send(ctx, job.TenantID, u, "new_sign_in", letterData{
		Link: "/account/sessions", Device: l.DeviceKind, IP: l.IP, At: l.At.UTC().Format("2006-01-02 15:04 UTC"),
		Place: strings.Join(slices.DeleteFunc([]string{place.City, place.Country}, func(s string) bool { return s == "" }), ", "),
	})
}

// sendLink sends a letter whose link carries a fresh ticket of the user, and the path that it
// leads on to then.
func (s *Service) sendLink(ctx context.Context, u identity.User, to, name, path, then string, n onetime.New) error {
	n.TenantID, n.UserID = u.TenantID, u.ID
	token, _, err := s.tokens.Create(ctx, n)
	if err != nil {
		return err
	}
	u.Email = to
	link := path + "?token=" + url.QueryEscape(token)
	if then != "" {
		link += "&next=" + url.QueryEscape(then)
	}
	return s.send(ctx, u.TenantID, u, name, letterData{Link: link, Hours: int(n.For / time.Hour)})
}

// letterData is what the texts of letters can name.
type letterData struct {
	Tenant string
	Email  string
	Name   string
	Link   string // a path; in the letter a URL
	Hours  int    // how long the link is good
	Code   string

	// Of a sign-in.
	Device    string // desktop, phone, tablet or other
	IP, Place string // the latter empty if it is not known
	At        string
}

// send sends a letter to a user.
func (s *Service) send(ctx context.Context, tenantID string, u identity.User, name string, data letterData) error {
	t, err := s.tenants.AuthnTenant(ctx, tenantID)
	if err != nil {
		return err
	}
	data.Tenant, data.Email, data.Name, data.Link = t.Name, u.Email, u.Name, t.BaseURL+data.Link
	letter, err := compose(u.Locale, name, data)
	if err != nil {
		return err
	}
	letter.FromName, letter.To = t.Name, u.Email
	return s.mail.Mail(ctx, letter)
}

// sendText sends a code to a telephone, while it is of use.
func (s *Service) sendText(ctx context.Context, job outbox.Job, j textJob) error {
	if s.now().Sub(job.CreatedAt) > smsFor {
		return outbox.ErrDrop
	}
	t, err := s.tenants.AuthnTenant(ctx, job.TenantID)
	if err != nil {
		return err
	}
	text, err := fill(texts()[0].letters["code"].Subject, letterData{Tenant: t.Name, Code: j.Code})
	if err != nil {
		return err
	}
	return s.texts.Text(ctx, j.Number, text)
}

//go:embed letters
var letterFiles embed.FS

// wording is what a letter says. Every text is a template over letterData.
type wording struct {
	Subject string   `yaml:"subject"`
	Before  []string `yaml:"before"` // paragraphs above the link
	Action  string   `yaml:"action"` // what the link is called
	After   []string `yaml:"after"`  // paragraphs below it
}

// translation is the letters in one language.
type translation struct {
	tag     language.Tag
	letters map[string]wording
}

// texts are the letters in all languages, English first. A language is a file in the
// folder letters.
var texts = sync.OnceValue(func() []translation {
	entries, err := letterFiles.ReadDir("letters")
	if err != nil {
		panic(err) // embedded
	}
	var all []translation
	for _, entry := range entries {
		name, isLanguage := strings.CutSuffix(entry.Name(), ".yaml")
		if !isLanguage {
			continue
		}
		text, err := letterFiles.ReadFile("letters/" + entry.Name())
		t := translation{tag: language.MustParse(name)}
		if err == nil {
			err = yaml.Unmarshal(text, &t.letters)
		}
		if err != nil {
			panic(fmt.Errorf("letters/%s: %w", entry.Name(), err))
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b translation) int {
		if a.tag == language.English {
			return -1
		}
		return 0
	})
	return all
})

var (
	plainLayout = template.Must(template.ParseFS(letterFiles, "letters/layout.txt"))
	htmlLayout  = htmltemplate.Must(htmltemplate.ParseFS(letterFiles, "letters/layout.html"))
)

// compose writes a letter in the language that is nearest to a locale.
func compose(locale, name string, data letterData) (l post.Letter, err error) {
	all := texts()
	tags := make([]language.Tag, len(all))
	for i, t := range all {
		tags[i] = t.tag
	}
	_, index := language.MatchStrings(language.NewMatcher(tags), locale)
	w, ok := all[index].letters[name]
	if !ok {
		return l, fmt.Errorf("there is no letter %q: %w", name, outbox.ErrDrop)
	}
	page := struct {
		letterData
		Language, Subject, Action string
		Before, After             []string
	}{letterData: data, Language: all[index].tag.String()}
	if page.Subject, err = fill(w.Subject, data); err != nil {
		return l, err
	}
	if page.Action, err = fill(w.Action, data); err != nil {
		return l, err
	}
	for from, to := range map[*[]string]*[]string{&w.Before: &page.Before, &w.After: &page.After} {
		for _, paragraph := range *from {
			text, err := fill(paragraph, data)
			if err != nil {
				return l, err
			}
			*to = append(*to, text)
		}
	}
	var plain, html bytes.Buffer
	if err := errors.Join(plainLayout.Execute(&plain, page), htmlLayout.Execute(&html, page)); err != nil {
		return l, fmt.Errorf("letter %s: %w", name, err)
	}
	return post.Letter{Subject: page.Subject, Text: plain.String(), HTML: html.String()}, nil
}

func fill(text string, data letterData) (string, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return "", fmt.Errorf("letter: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", fmt.Errorf("letter: %w", err)
	}
	return b.String(), nil
}
