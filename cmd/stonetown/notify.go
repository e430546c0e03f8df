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
	"stonetown/internal/notify"
	"stonetown/oauth/protocol"
)

// openNotify opens the senders of mails and text messages. mailbox shows them in development and
// is nil otherwise.
func openNotify(config Config) (mail notify.Mailer, texts notify.Texter, mailbox pages.Mailbox, err error) {
	mail, texts = notify.None{}, notify.None{}
	if config.Dev {
		folder, err := notify.NewFolder(filepath.Join(config.DataDir, "outbox"))
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
		if mail, err = notify.NewSMTP(config.MailURL, password, config.MailFrom); err != nil {
			return nil, nil, nil, fmt.Errorf("mail_url: %w", err)
		}
	}
	if config.TextURL != "" {
		token, err := readSecret(config.TextTokenFile)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("text_token_file: %w", err)
		}
		texts = notify.NewGateway(config.TextURL, token, config.TextCountries)
	}
	return mail, texts, mailbox, nil
}

// readSecret reads a file of one line. Without a path it returns the empty string.
func readSecret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// senders finds the tenants that send mails to users and notifications to applications.
type senders struct{ tenants *controlplane.Directory }

// AuthnTenant implements [authn.Tenants].
func (s senders) AuthnTenant(ctx context.Context, tenantID string) (authn.Tenant, error) {
	t, err := s.tenants.TenantByID(ctx, tenantID)
	return authn.Tenant{ID: t.ID, Name: t.Name, BaseURL: t.BaseURL}, err
}

// OAuthTenant implements [oauth.Config.Tenants].
func (s senders) OAuthTenant(ctx context.Context, tenantID string) (protocol.Tenant, error) {
	t, err := s.tenants.TenantByID(ctx, tenantID)
	return protocol.Tenant{ID: t.ID, BaseURL: t.BaseURL}, err
}
