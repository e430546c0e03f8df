package branding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// cacheSize is the number of tenants whose branding is cached. One has some kilobytes.
const cacheSize = 4096

// Tenants has the marks of tenants.
type Tenants interface {
	// UpdateBranding runs with in a transaction, and sets the mark that it returns.
	UpdateBranding(ctx context.Context, tenantID string, with func(ctx context.Context, tx *sqldb.Tx) (mark string, err error)) error
}

// Config contains the dependencies of a registry. All fields but Clock are required.
type Config struct {
	DB      *sqldb.DB
	Tenants Tenants
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
}

// Registry stores the brandings of tenants. It is safe for concurrent use.
type Registry struct {
	db      *sqldb.DB
	tenants Tenants
	clock   func() time.Time
	cache   *lru.Cache[key, *Branding]
}

// key is a tenant with its mark.
type key struct{ tenantID, mark string }

// New returns the registry in c.DB.
func New(c Config) (*Registry, error) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	cache, err := lru.New[key, *Branding](cacheSize)
	if err != nil {
		return nil, fmt.Errorf("branding: %w", err)
	}
	return &Registry{db: c.DB, tenants: c.Tenants, clock: c.Clock, cache: cache}, nil
}

// none is the branding of tenants without one.
var none = new(Branding)

// Of returns the branding of a tenant with a mark, which is not nil. Without a mark it reads nothing.
func (r *Registry) Of(ctx context.Context, tenantID, mark string) (*Branding, error) {
	if mark == "" {
		return none, nil
	}
	if found, ok := r.cache.Get(key{tenantID, mark}); ok {
		return found, nil
	}
	// What is read can be newer than the mark. It is cached by its own.
	found, own, err := selectBranding(ctx, r.db, tenantID)
	if err != nil {
		return nil, err
	}
	r.cache.Add(key{tenantID, own}, &found)
	return &found, nil
}

// Get reads the branding of a tenant.
func (r *Registry) Get(ctx context.Context, tenantID string) (Branding, error) {
	b, _, err := selectBranding(ctx, r.db, tenantID)
	return b, err
}

// Update changes the branding of a tenant, with an event if anything differs. change receives the
// present branding and may be called more than once. Update fails with an [*InvalidError].
func (r *Registry) Update(ctx context.Context, tenantID string, change func(*Branding)) (Branding, error) {
	after, err := r.update(ctx, tenantID, func(_ *sqldb.Tx, b *Branding) error {
		change(b)
		return b.Validate()
	})
	if err != nil {
		return Branding{}, fmt.Errorf("update branding: %w", err)
	}
	return after, nil
}

// SetLogo stores the logo of a tenant in a variant, and with the light one its icon.
func (r *Registry) SetLogo(ctx context.Context, tenantID string, v Variant, logo, icon Picture) (Branding, error) {
	after, err := r.update(ctx, tenantID, func(tx *sqldb.Tx, b *Branding) error {
		if b.Logos == nil {
			b.Logos = map[Variant]Logo{}
		}
		b.Logos[v] = logo.Logo
		if err := upsertPicture(ctx, tx, tenantID, v, logo); err != nil || v != LightLogo {
			return err
		}
		b.Logos[Icon] = icon.Logo
		return upsertPicture(ctx, tx, tenantID, Icon, icon)
	})
	if err != nil {
		return Branding{}, fmt.Errorf("set logo: %w", err)
	}
	return after, nil
}

// RemoveLogo removes a variant of the logo, with the light one the icon. It has no effect if there is
// none.
func (r *Registry) RemoveLogo(ctx context.Context, tenantID string, v Variant) error {
	removed := []Variant{v}
	if v == LightLogo {
		removed = append(removed, Icon)
	}
	_, err := r.update(ctx, tenantID, func(tx *sqldb.Tx, b *Branding) error {
		for _, v := range removed {
			delete(b.Logos, v)
			if err := deletePicture(ctx, tx, tenantID, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove logo: %w", err)
	}
	return nil
}

// update changes a branding in a transaction.
func (r *Registry) update(ctx context.Context, tenantID string, change func(*sqldb.Tx, *Branding) error) (after Branding, err error) {
	err = r.tenants.UpdateBranding(ctx, tenantID, func(ctx context.Context, tx *sqldb.Tx) (string, error) {
		before, present, err := selectBranding(ctx, tx, tenantID)
		if err != nil {
			return "", err
		}
		after = before.clone()
		if err := change(tx, &after); err != nil {
			return "", err
		}
		after.normalize()
		mark, text, err := after.mark()
		if err != nil {
			return "", err
		}
		if old, _, err := before.mark(); err != nil || old == mark {
			return present, err
		}
		if err := upsertBranding(ctx, tx, tenantID, mark, text, r.clock()); err != nil {
			return "", err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, updated(ctx, before, after))
		return mark, tx.Send(ctx, &b)
	})
	return after, err
}

// normalize removes empty members, so that equal brandings have equal marks.
func (b *Branding) normalize() {
	for language, texts := range b.Texts {
		for name, value := range texts {
			if value == "" {
				delete(texts, name)
			}
		}
		if len(texts) == 0 {
			delete(b.Texts, language)
		}
	}
	for scheme, colors := range b.Colors {
		if colors == (Colors{}) {
			delete(b.Colors, scheme)
		}
	}
	if len(b.Texts) == 0 {
		b.Texts = nil
	}
	if len(b.Colors) == 0 {
		b.Colors = nil
	}
	if len(b.Logos) == 0 {
		b.Logos = nil
	}
	b.Languages = slices.DeleteFunc(Languages(), func(tag string) bool { return !slices.Contains(b.Languages, tag) })
	if len(b.Languages) == 0 {
		b.Languages = nil
	}
}

// mark returns the mark of the branding, and the branding as it is stored. The zero value has no mark.
func (b Branding) mark() (mark, text string, err error) {
	stored, err := json.Marshal(b)
	if err != nil || reflect.ValueOf(b).IsZero() {
		return "", string(stored), err
	}
	sum := sha256.Sum256(stored)
	return hex.EncodeToString(sum[:16]), string(stored), nil
}

// Picture reads a picture of a tenant. It fails with [ErrNoLogo].
func (r *Registry) Picture(ctx context.Context, tenantID string, v Variant) (Picture, error) {
	return selectPicture(ctx, r.db, tenantID, v)
}
