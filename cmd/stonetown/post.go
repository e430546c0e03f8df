package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stonetown/api/pages"
	"stonetown/controlplane"
	"stonetown/identity/authn"
	"stonetown/internal/post"
	"stonetown/oauth"
)

// openPost opens what letters and texts go through; mailbox is nil if nobody may look
// at them.
func openPost(config Config) (mail post.Mailer, texts post.Texter, mailbox pages.Mailbox, err error) {
	mail, texts = post.None{}, post.None{}
	if config.Dev {
		folder, err := post.NewFolder(filepath.Join(config.DataDir, "outbox"))
		if err != nil {
			return nil, nil, nil, err
		}
		mail, texts, mailbox = folder, folder, folder
	}
	if config.MailURL != "" {
		password, err := readSecret(config.MailPasswordFile)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("mail_password_file: %w", err)
		}
		if mail, err = post.NewSMTP(config.MailURL, password, config.MailFrom); err != nil {
			return nil, nil, nil, fmt.Errorf("mail_url: %w", err)
		}
	}
	if config.TextURL != "" {
		token, err := readSecret(config.TextTokenFile)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("text_token_file: %w", err)
		}
		texts = post.NewGateway(config.TextURL, token, config.TextCountries)
	}
	return mail, texts, mailbox, nil
}

// readSecret reads a file of one line; none if there is no file.
func readSecret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// letterheads say which tenant a letter is from, or a word to an application.
type letterheads struct{ tenants *controlplane.Directory }

// AuthnTenant implements [authn.Tenants].
func (l letterheads) AuthnTenant(ctx context.Context, tenantID string) (authn.Tenant, error) {
	t, err := l.tenants.TenantByID(ctx, tenantID)
	return authn.Tenant{ID: t.ID, Name: t.Name, BaseURL: t.BaseURL}, err
}

// OAuthTenant is what package oauth wants to know.
func (l letterheads) OAuthTenant(ctx context.Context, tenantID string) (oauth.Tenant, error) {
	t, err := l.tenants.TenantByID(ctx, tenantID)
	return oauth.Tenant{ID: t.ID, BaseURL: t.BaseURL}, err
}
