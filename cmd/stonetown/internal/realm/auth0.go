package realm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// auth0User is a line of an export of users (POST /api/v2/jobs/users-exports with format json) or
// of the file of password hashes that Auth0's support sends.
type auth0User struct {
	ID            string `json:"user_id"`
	Email         string `json:"email"`
	EmailVerified *bool  `json:"email_verified"`
	Username      string `json:"username"`
	Name          string `json:"name"`
	GivenName     string `json:"given_name"`
	FamilyName    string `json:"family_name"`
	Picture       string `json:"picture"`
	Locale        string `json:"locale"`
	Blocked       bool   `json:"blocked"`
	Identities    []struct {
		Provider string `json:"provider"`
		UserID   any    `json:"user_id"`
	} `json:"identities"`
	UserMetadata map[string]any `json:"user_metadata"`
	AppMetadata  map[string]any `json:"app_metadata"`

	OID struct {
		OID string `json:"$oid"`
	} `json:"_id"` // of a line with a hash
	Hash string `json:"passwordHash"`
}

// account returns the id of the account in the database of Auth0, by which the two files belong
// together; empty if the user has none.
func (u *auth0User) account() string {
	if u.OID.OID != "" {
		return u.OID.OID
	}
	if id, ok := strings.CutPrefix(u.ID, "auth0|"); ok {
		return id
	}
	for _, i := range u.Identities {
		if i.Provider == "auth0" {
			return fmt.Sprint(i.UserID)
		}
	}
	return ""
}

// Auth0 reads exports of Auth0, one JSON object a line or one array: the users and, if there is
// one, the file of their password hashes.
func Auth0(files ...[]byte) (*Realm, error) {
	r := &Realm{}
	var users []*auth0User
	hashes := map[string]string{}
	for n, file := range files {
		lines, err := objects(file)
		if err != nil {
			return nil, fmt.Errorf("file %d: %w", n+1, err)
		}
		for i, line := range lines {
			var u auth0User
			if err := decode(line, fmt.Sprintf("object %d of file %d", i+1, n+1), &u); err != nil {
				return nil, err
			}
			if u.Hash != "" {
				hashes[u.account()] = u.Hash
			}
			if u.ID != "" {
				users = append(users, &u)
			}
		}
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("no user was found: an export of users has the field user_id in each object")
	}
	seen := map[string]bool{}
	for _, from := range users {
		r.auth0User(from, hashes, seen)
	}
	return r, nil
}

// objects returns the objects of an array, or of lines.
func objects(data []byte) ([]json.RawMessage, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if bytes.HasPrefix(data, []byte("[")) {
		var all []json.RawMessage
		return all, decode(data, "it", &all)
	}
	var all []json.RawMessage
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			all = append(all, json.RawMessage(line))
		}
	}
	return all, nil
}

func (r *Realm) auth0User(from *auth0User, hashes map[string]string, seen map[string]bool) {
	u := User{
		Email: from.Email, EmailVerified: from.EmailVerified != nil && *from.EmailVerified, Name: from.Name, GivenName: from.GivenName, FamilyName: from.FamilyName,
		Locale: from.Locale, Disabled: from.Blocked,
	}
	if u.Name == from.Email { // Auth0's default
		u.Name = ""
	}
	if strings.HasPrefix(from.Picture, "https://") && !strings.Contains(from.Picture, "gravatar.com/") {
		u.Picture = from.Picture
	}
	u.Attributes = map[string]any{}
	if len(from.UserMetadata) > 0 {
		u.Attributes["user_metadata"] = from.UserMetadata
	}
	if len(from.AppMetadata) > 0 {
		r.note("", "app_metadata is left out, because users can change their attributes here: make groups or relations of it")
	}
	if from.Username != "" {
		u.Attributes["username"] = from.Username
	}
	if len(u.Attributes) == 0 {
		u.Attributes = nil
	}
	name := from.Email
	if name == "" {
		name = from.ID
	}
	account := from.account()
	switch hash := hashes[account]; {
	case account == "": // signs in at another provider only
	case hash == "" && len(hashes) > 0:
		r.note("user "+name, "has a password, and the file of hashes lacks it: the user has to choose a new one")
	case hash == "":
		r.note("", "passwords are left out, because no file of password hashes was given: users have to choose new ones")
	case strings.HasPrefix(hash, "$2"):
		u.PasswordHash = &PasswordHash{"bcrypt", hash}
	default:
		r.note("user "+name, "the password has a hash of another kind than bcrypt: the user has to choose a new one")
	}
	for _, i := range from.Identities {
		if i.Provider != "auth0" {
			r.note("identity provider "+i.Provider, "users sign in with it: set it up as a connection; they are linked by their verified address at the first sign-in, if its policy allows that")
		}
	}
	r.add(u, name, seen)
}
