package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// signIn signs the owner of an organisation in at the control plane, without a browser, and returns
// the token of the session.
func (s *running) signIn(t *testing.T, c credentials) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": c.Owner.Email, "password": c.Owner.Password})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := s.do("POST", "http://"+s.Addr()+"/api/v1/auth/sign-in", hostOf(t, c.ControlURL), " ", string(body))
	data, _ := answer["data"].(map[string]any)
	token, _ := data["session_token"].(string)
	if status != 200 || token == "" {
		t.Fatalf("sign in: %d %v", status, answer)
	}
	return token
}

// A colleague who has no account follows the mail of an invitation, signs up, and is a member.
func TestInvitationPage(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir)
	b := openBrowser(t, server)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b.base = c.ControlURL
	token := server.signIn(t, c)
	manage := func(method, path, body string, want int) map[string]any {
		t.Helper()
		status, answer := server.do(method, "http://"+server.Addr()+"/api/v1/organizations/"+c.OrgID+path, hostOf(t, c.ControlURL), token, body)
		if status != want {
			t.Fatalf("%s %s: %d %v, want %d", method, path, status, answer, want)
		}
		return answer
	}
	manage("POST", "/invitations", `{"email":"bob@example.com","role":"operator"}`, 201)

	b.letter("invites you to dev")
	b.at("/auth/sign-in", "Sign in")
	b.signIn(c.Owner.Email, c.Owner.Password) // another account than the invited one
	b.at("/invitation", "Join an organisation")
	b.says(c.Owner.Email)
	b.press("Accept the invitation")
	b.says("was sent to another address")
	b.press("Sign in with another account")
	b.at("/auth/sign-out", "Sign out?")
	b.press("Sign out")
	b.at("/auth/sign-in", "Sign in")
	b.press("Create an account")
	b.at("/auth/sign-up", "Create an account")
	b.fill("email", "bob@example.com", "password", "a long enough password")
	b.press("Create account")
	b.at("/auth/verify-email", "Confirm your e-mail address")
	b.letter("Confirm your e-mail address for Control plane")
	b.at("/auth/verify-email", "Confirm your e-mail address")
	b.press("Yes, this is my address")
	b.at("/auth/verify-email", "E-mail address confirmed")
	b.press("Continue")
	b.at("/auth/sign-in", "Sign in")
	b.signIn("bob@example.com", "a long enough password")
	b.at("/invitation", "Join an organisation")
	b.press("Accept the invitation")
	b.at("/invitation", "You have joined the organisation")
	b.says("Your role is operator.")
	members, _ := manage("GET", "/members", "", 200)["data"].([]any)
	first, _ := members[0].(map[string]any)
	if len(members) != 2 || first["email"] != "bob@example.com" || first["role"] != "operator" {
		t.Errorf("members: %v", members)
	}
	b.press("Continue")
	b.at("/console/organizations/"+c.OrgID, "dev")
	b.letter("invites you to dev")
	b.press("Accept the invitation")
	b.says("was accepted before")
}
