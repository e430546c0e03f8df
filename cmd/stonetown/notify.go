package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stonetown/api/pages"
	"stonetown/internal/notify"
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
