package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Tenants is the given number of tenants with ten short chains of folders each; a check is
// mostly about another tenant than the one before. In process each is a tenant of its own,
// on other targets a part of one tenant.
func Tenants(n int) Workload { return tenants(n) }

type tenants int

const (
	tenantChains = 10
	tenantDepth  = 3
	tenantUsers  = 50
)

func tenantFolder(tenant, chain, level int) tuplestore.Object {
	return object("folder", fmt.Sprintf("tenant%d.%d-", tenant, chain), level)
}

func (n tenants) Name() string         { return fmt.Sprintf("tenants-%d", int(n)) }
func (n tenants) Types() []schema.Type { return drive() }

func (n tenants) Tuples(yield func(tuplestore.Tuple) bool) {
	for tenant := range int(n) {
		for chain := range tenantChains {
			ok := true
			for level := range tenantDepth {
				ok = ok && yield(tuplestore.Tuple{
					Object: tenantFolder(tenant, chain, level+1), Relation: "parent", Subject: asSubject(tenantFolder(tenant, chain, level), ""),
				})
			}
			for u := chain; u < tenantUsers; u += tenantChains {
				ok = ok && yield(tuplestore.Tuple{Object: tenantFolder(tenant, chain, 0), Relation: "viewer", Subject: user(u)})
			}
			if !ok {
				return
			}
		}
	}
}

func (n tenants) Questioner(seed, worker uint64) Questioner {
	return &tenantsQuestioner{n, rand.New(rand.NewPCG(seed, worker))}
}

type tenantsQuestioner struct {
	tenants tenants
	rand    *rand.Rand
}

func (q *tenantsQuestioner) Next() Question {
	return q.ask(q.rand.IntN(int(q.tenants)), q.rand.IntN(tenantUsers))
}

// Batch stays within a tenant.
func (q *tenantsQuestioner) Batch(size int) []Question {
	tenant, u := q.rand.IntN(int(q.tenants)), q.rand.IntN(tenantUsers)
	batch := make([]Question, size)
	for i := range batch {
		batch[i] = q.ask(tenant, u)
	}
	return batch
}

func (q *tenantsQuestioner) ask(tenant, u int) Question {
	chain := (u + q.rand.IntN(2)) % tenantChains
	return Question{user(u), tenantFolder(tenant, chain, tenantDepth), "view", chain == u%tenantChains}
}

// tenanted is a target with a tenant for each one of [Tenants].
type tenanted struct {
	*InProcess
	tenants tenants
}

func (t *tenanted) tenant(n string) *InProcess {
	return &InProcess{Engine: t.Engine, Tenant: t.Tenant + "_" + n}
}

// of returns the tenant of a resource.
func (t *tenanted) of(o tuplestore.Object) *InProcess {
	n, _, _ := strings.Cut(strings.TrimPrefix(o.ID, "tenant"), ".")
	return t.tenant(n)
}

func (t *tenanted) Define(ctx context.Context, types []schema.Type) error {
	for n := range int(t.tenants) {
		if err := t.tenant(strconv.Itoa(n)).Define(ctx, types); err != nil {
			return err
		}
	}
	return nil
}

// Write makes one write for each tenant; the tuples of a tenant are consecutive.
func (t *tenanted) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	for len(tuples) > 0 {
		to, n := t.of(tuples[0].Object), 1
		for n < len(tuples) && t.of(tuples[n].Object).Tenant == to.Tenant {
			n++
		}
		if err := to.Write(ctx, tuples[:n]); err != nil {
			return err
		}
		tuples = tuples[n:]
	}
	return nil
}

// Warm sends a check to each tenant and waits a while for it to be loaded, which does not
// happen if the memory does not suffice.
func (t *tenanted) Warm(ctx context.Context, w Workload) error {
	for range 2 {
		for n := range int(t.tenants) {
			question := Question{Subject: user(0), Resource: tenantFolder(n, 0, 0), Action: "view"}
			if _, err := t.Prepare([]Question{question})(ctx); err != nil {
				return err
			}
		}
		time.Sleep(time.Second)
	}
	return nil
}

func (t *tenanted) Prepare(questions []Question) Call {
	return t.of(questions[0].Resource).Prepare(questions)
}
