package management

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"time"

	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations {
	return sqldb.EmbeddedMigrations("management", migrations)
}

// Relations is the part of [engine.Engine] that the package uses, for the system tenant.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
	Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error)
	Relations(ctx context.Context, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error)
	RelationsIn(ctx context.Context, tx *sqldb.Tx, tenantID string, o tuplestore.Object, relation string, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	Naming(ctx context.Context, tenantID, typ string, subject tuplestore.Object, after *tuplestore.Record, limit int) ([]tuplestore.Record, error)
	Types(ctx context.Context, tenantID string) ([]schema.Type, error)
	PutType(ctx context.Context, tenantID string, t schema.Type, origin engine.Origin) (stored schema.Type, created bool, token string, err error)
}

// Person is a user of the system tenant.
type Person struct {
	ID            string
	Email         string
	EmailVerified bool
	Name          string
	MFAEnrolled   bool
	LastActiveAt  time.Time
}

// Users has the users of the system tenant.
type Users interface {
	// People returns those of some users that exist, by id.
	People(ctx context.Context, userIDs []string) (map[string]Person, error)
	// ByEmail returns the user with an address; false if there is none.
	ByEmail(ctx context.Context, email string) (Person, bool, error)
	// First returns the user that was created first; false if there is none.
	First(ctx context.Context) (Person, bool, error)
	// NormalEmail returns the form in which addresses are compared, or an error for a text that
	// is not an address.
	NormalEmail(email string) (string, error)
}

// NewApplication is an application to create, which has a secret and acts for itself.
type NewApplication struct {
	ID, ClientID, Name string
	// Administers gives it all built-in scopes.
	Administers bool
}

// Applications creates the applications of tenants.
type Applications interface {
	// Create creates an application in a transaction, and returns its secret.
	Create(ctx context.Context, tx *sqldb.Tx, tenantID string, n NewApplication) (secret string, err error)
	// Provision makes what a tenant has from the beginning, and can be repeated.
	Provision(ctx context.Context, tenantID string) error
	// RotateSecret replaces the secret of an application. The secret before stays valid for the
	// time of the tenant's settings, or ends at once. attach queues statements that
	// commit with the rotation.
	RotateSecret(ctx context.Context, tenantID, applicationID string, atOnce bool, attach func(b *sqldb.Batch)) (RotatedSecret, error)
	// Delete deletes an application, with its relations, if it exists. After it returns, no process
	// accepts its tokens.
	Delete(ctx context.Context, tenantID, applicationID string) error
}

// Mail sends invitations.
type Mail interface {
	// SendInvitation sends a link, which is a path of the control plane, to an address.
	SendInvitation(ctx context.Context, email, organization, inviter, link string, valid time.Duration) error
}

// Config configures a service. All but the last part is required.
type Config struct {
	DB           *sqldb.DB
	Directory    *controlplane.Directory
	Relations    Relations
	Users        Users
	Applications Applications
	Mail         Mail
	Consoles     Consoles
	Jobs         *jobs.Queue
	Log          *eventlog.Log

	// Open lets every user with a verified address create an organisation. Otherwise only owners
	// of another one can.
	Open bool
	// Regions are the regions of tenants, the default first. Default: tenants have none.
	Regions []string
	// MaxTenants is how many tenants an organisation can have. Default: [MaxTenants].
	MaxTenants int
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Logger receives the errors of background work. Default: they are discarded.
	Logger *slog.Logger
}

// MaxTenants is the default of [Config.MaxTenants].
const MaxTenants = 100

// Service implements the operations of the control plane. It is safe for concurrent use.
type Service struct {
	db           *sqldb.DB
	directory    *controlplane.Directory
	relations    Relations
	users        Users
	applications Applications
	mail         Mail
	consoles     Consoles
	jobs         *jobs.Queue
	log          *eventlog.Log
	open         bool
	regions      []string
	maxTenants   int
	clock        func() time.Time
	logger       *slog.Logger
}

// New returns a service, and registers its jobs.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Directory == nil || c.Relations == nil || c.Users == nil || c.Applications == nil || c.Mail == nil || c.Consoles == nil || c.Jobs == nil || c.Log == nil {
		return nil, errors.New("management: Config.DB, Directory, Relations, Users, Applications, Mail, Consoles, Jobs and Log are required")
	}
	if c.MaxTenants == 0 {
		c.MaxTenants = MaxTenants
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		db: c.DB, directory: c.Directory, relations: c.Relations, users: c.Users, applications: c.Applications, mail: c.Mail, consoles: c.Consoles, jobs: c.Jobs,
		log: c.Log, open: c.Open, regions: c.Regions, maxTenants: c.MaxTenants, clock: c.Clock, logger: c.Logger,
	}
	s.jobs.Register(jobs.Kind{Name: invitationJob, Handle: s.mailInvitation})
	return s, nil
}

func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

const (
	// backgroundEvery is the pause between the steps of [Service.Run].
	backgroundEvery = 5 * time.Second
	// atOnce is how many rows one step handles.
	atOnce = 250
)

// Run finishes tenants that a process left while it provisioned them, and ends invitations that
// have expired, until ctx ends. Every process may run it.
func (s *Service) Run(ctx context.Context) {
	jobs.Loop{Name: "control plane", Every: backgroundEvery, Logger: s.logger}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		return errors.Join(s.Resume(ctx), s.expire(ctx))
	}))
}
