package mails

import (
	"context"
	"embed"
	"fmt"
	"time"

	"stonetown/identity/branding"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("mails", migrations) }

// Tenant contains the properties of a tenant that the package uses.
type Tenant struct {
	ID       string
	Name     string
	BaseURL  string
	Branding string // the mark of its branding
}

// Brandings has the brandings of tenants; [branding.Registry] implements it.
type Brandings interface {
	Of(ctx context.Context, tenantID, mark string) (*branding.Branding, error)
}

// Config contains the dependencies of a composer. All fields but Clock are required.
type Config struct {
	DB        *sqldb.DB
	Brandings Brandings
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
}

// Composer composes mails, and stores the templates of tenants. It is safe for concurrent use.
type Composer struct {
	db        *sqldb.DB
	brandings Brandings
	clock     func() time.Time
}

// New returns a composer.
func New(c Config) *Composer {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Composer{c.DB, c.Brandings, c.Clock}
}

// Mail composes a mail to a user in the language that suits a locale best of those that the tenant offers.
// It fails with [jobs.ErrDrop] for an unknown mail.
func (c *Composer) Mail(ctx context.Context, t Tenant, locale, name string, d Data) (notify.Mail, error) {
	look, err := c.brandings.Of(ctx, t.ID, t.Branding)
	if err != nil {
		return notify.Mail{}, err
	}
	in := look.Language(locale)
	own, err := c.Template(ctx, t.ID, name, in.Tag())
	if err != nil {
		return notify.Mail{}, err
	}
	return compose(in, name, d, t, look, own)
}

// Code composes the text message with a code.
func (c *Composer) Code(ctx context.Context, t Tenant, locale string, d Data) (string, error) {
	look, err := c.brandings.Of(ctx, t.ID, t.Branding)
	if err != nil {
		return "", err
	}
	return composeCode(look.Language(locale), look.Name(t.Name), d), nil
}

// Preview composes a mail with sample values in a language, with a template that need not be stored. It
// fails with an [*InvalidError].
func (c *Composer) Preview(ctx context.Context, t Tenant, name, tag string, own Template) (notify.Mail, error) {
	if own != (Template{}) {
		if err := own.Validate(name); err != nil {
			return notify.Mail{}, err
		}
	}
	return c.sample(ctx, t, name, tag, sample(name).Email, own)
}

// Test composes a mail with sample values in a language, as it is sent, to an address.
func (c *Composer) Test(ctx context.Context, t Tenant, name, tag, to string) (notify.Mail, error) {
	own, err := c.Template(ctx, t.ID, name, tag)
	if err != nil {
		return notify.Mail{}, err
	}
	return c.sample(ctx, t, name, tag, to, own)
}

// sample composes a mail with sample values. Its link leads to the account.
func (c *Composer) sample(ctx context.Context, t Tenant, name, tag, to string, own Template) (notify.Mail, error) {
	in, ok := languageOf(tag)
	if !ok {
		return notify.Mail{}, fmt.Errorf("there is no language %q: %w", tag, jobs.ErrDrop)
	}
	look, err := c.brandings.Of(ctx, t.ID, t.Branding)
	if err != nil {
		return notify.Mail{}, err
	}
	d := sample(name)
	d.Email, d.Link = to, t.BaseURL+"/account"
	return compose(in, name, d, t, look, own)
}

// Template reads the template of a tenant; the zero value if it has none.
func (c *Composer) Template(ctx context.Context, tenantID, name, tag string) (Template, error) {
	return selectTemplate(ctx, c.db, tenantID, name, tag)
}

// Customized returns the languages of the templates of a tenant by mail, sorted.
func (c *Composer) Customized(ctx context.Context, tenantID string) (map[string][]string, error) {
	rows, err := c.db.Query(ctx, `SELECT mail, language FROM mail_templates WHERE tenant_id = $1 ORDER BY mail, language`, tenantID)
	if err != nil {
		return nil, fmt.Errorf("list mail templates: %w", err)
	}
	defer rows.Close()
	found := map[string][]string{}
	for rows.Next() {
		var mail, language string
		if err := rows.Scan(&mail, &language); err != nil {
			return nil, err
		}
		found[mail] = append(found[mail], language)
	}
	return found, rows.Err()
}

// Set stores a template, with an event if it differs. It fails with an [*InvalidError].
func (c *Composer) Set(ctx context.Context, tenantID, name, tag string, t Template) error {
	if err := t.Validate(name); err != nil {
		return err
	}
	return c.store(ctx, tenantID, name, tag, t)
}

// Reset deletes a template, with an event if there is one. The text is the built-in one again.
func (c *Composer) Reset(ctx context.Context, tenantID, name, tag string) error {
	return c.store(ctx, tenantID, name, tag, Template{})
}

// store stores a template, or deletes it if it is empty.
func (c *Composer) store(ctx context.Context, tenantID, name, tag string, t Template) error {
	err := c.db.Tx(ctx, func(tx *sqldb.Tx) error {
		before, err := selectTemplate(ctx, tx, tenantID, name, tag)
		if err != nil || before == t {
			return err
		}
		if err := writeTemplate(ctx, tx, tenantID, name, tag, t, c.clock()); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, updated(ctx, before.Document(name, tag), t.Document(name, tag)))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("store mail template: %w", err)
	}
	return nil
}

// querier is a [*sqldb.DB] or a [*sqldb.Tx].
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) *sqldb.Row
}

// Document is the public representation of a template, in responses and in events.
type Document struct {
	Mail     string  `json:"mail"`
	Language string  `json:"language"`
	Subject  *string `json:"subject"`
	Heading  *string `json:"heading"`
	Body     *string `json:"body"`
	Button   *string `json:"button"`
}

// Document is the public representation of the template.
func (t Template) Document(name, tag string) Document {
	return Document{name, tag, document.OrNull(t.Subject), document.OrNull(t.Heading), document.OrNull(t.Body), document.OrNull(t.Button)}
}

// DetailDocument is a [Document] with what an author of the text needs.
type DetailDocument struct {
	Mail      string          `json:"mail"`
	Language  string          `json:"language"`
	Subject   *string         `json:"subject"`
	Heading   *string         `json:"heading"`
	Body      *string         `json:"body"`
	Button    *string         `json:"button"`
	Variables []string        `json:"variables"`
	BuiltIn   BuiltInDocument `json:"built_in"`
}

// BuiltInDocument is a built-in text, written as a template.
type BuiltInDocument struct {
	Subject string `json:"subject"`
	Heading string `json:"heading"`
	Body    string `json:"body"`
	Button  string `json:"button"`
}

// Detail is the public representation of the template with its built-in text.
func (t Template) Detail(name, tag string) DetailDocument {
	d := t.Document(name, tag)
	return DetailDocument{d.Mail, d.Language, d.Subject, d.Heading, d.Body, d.Button, Variables(name), BuiltInDocument(BuiltIn(name, tag))}
}

func updated(ctx context.Context, before, after Document) eventlog.Event {
	return eventlog.Of(ctx, eventlog.MailTemplateUpdated, struct {
		MailTemplate Document         `json:"mail_template"`
		Changes      document.Changes `json:"changes"`
	}{after, document.Difference(before, after)})
}
