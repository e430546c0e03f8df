package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"github.com/authzed/authzed-go/v1"
	"github.com/authzed/grpcutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"stonetown/bench"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// spiceDB is a SpiceDB, reached through its own client.
type spiceDB struct {
	client *authzed.Client
	direct map[string]bool // type#relation: tuples of it are kept in a relation of their own
}

func dialSpiceDB(address, key string) (*spiceDB, error) {
	client, err := authzed.NewClient(address,
		grpcutil.WithInsecureBearerToken(key), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &spiceDB{client, map[string]bool{}}, nil
}

func (s *spiceDB) Name() string    { return "SpiceDB" }
func (s *spiceDB) WriteLimit() int { return 5000 }

// Define translates the types. A relation that has both tuples and rewrites becomes
// a permission, and its tuples those of a relation beside it.
func (s *spiceDB) Define(ctx context.Context, types []schema.Type) error {
	var b strings.Builder
	b.WriteString("definition user {}\ndefinition group {\n\trelation member: user | group#member\n}\n")
	for _, t := range types {
		fmt.Fprintf(&b, "definition %s {\n", t.Name)
		for _, r := range t.Relations {
			var subjects []string
			for _, subject := range r.Subjects {
				subjects = append(subjects, subject.String())
			}
			stored := r.Name
			if len(r.Rewrites) > 0 {
				stored = "direct_" + r.Name
			}
			if len(r.Rewrites) == 0 || strings.Contains(fmt.Sprint(r.Rewrites), string(schema.This)) {
				fmt.Fprintf(&b, "\trelation %s: %s\n", stored, strings.Join(subjects, " | "))
				s.direct[t.Name+"#"+r.Name] = stored != r.Name
			}
			if len(r.Rewrites) > 0 {
				fmt.Fprintf(&b, "\tpermission %s = %s\n", r.Name, spiceDBUnion(r.Name, r.Rewrites))
			}
		}
		b.WriteString("}\n")
	}
	_, err := s.client.WriteSchema(ctx, &v1.WriteSchemaRequest{Schema: b.String()})
	return err
}

func spiceDBUnion(relation string, rewrites []schema.Rewrite) string {
	parts := make([]string, len(rewrites))
	for i, r := range rewrites {
		switch r.Kind {
		case schema.This:
			parts[i] = "direct_" + relation
		case schema.Computed:
			parts[i] = r.Relation
		case schema.TupleToUserset:
			parts[i] = r.Tupleset + "->" + r.Computed
		default:
			panic("the docs workload has no " + string(r.Kind))
		}
	}
	return strings.Join(parts, " + ")
}

func spiceDBObject(o tuplestore.Object) *v1.ObjectReference {
	return &v1.ObjectReference{ObjectType: o.Type, ObjectId: o.ID}
}

func spiceDBSubject(s tuplestore.Subject) *v1.SubjectReference {
	return &v1.SubjectReference{Object: spiceDBObject(s.Object()), OptionalRelation: s.Relation}
}

func (s *spiceDB) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	stream, err := s.client.ImportBulkRelationships(ctx)
	if err != nil {
		return err
	}
	var batch []*v1.Relationship
	for _, t := range tuples {
		relation := t.Relation
		if s.direct[t.Object.Type+"#"+relation] {
			relation = "direct_" + relation
		}
		batch = append(batch, &v1.Relationship{Resource: spiceDBObject(t.Object), Relation: relation, Subject: spiceDBSubject(t.Subject)})
	}
	if err := stream.Send(&v1.ImportBulkRelationshipsRequest{Relationships: batch}); err != nil {
		return err
	}
	_, err = stream.CloseAndRecv()
	return err
}

func (s *spiceDB) Warm(ctx context.Context, w bench.Workload) error { return warm(ctx, s, w) }

func (s *spiceDB) Prepare(questions []bench.Question) bench.Call {
	full := &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}}
	allowed := make([]bool, len(questions))
	if len(questions) == 1 {
		q := &questions[0]
		req := &v1.CheckPermissionRequest{
			Consistency: full, Resource: spiceDBObject(q.Resource), Permission: relationOf(q.Action), Subject: spiceDBSubject(q.Subject),
		}
		return func(ctx context.Context) ([]bool, error) {
			res, err := s.client.CheckPermission(ctx, req)
			if err != nil {
				return nil, err
			}
			allowed[0] = res.Permissionship == v1.CheckPermissionResponse_PERMISSIONSHIP_HAS_PERMISSION
			return allowed, nil
		}
	}
	req := &v1.CheckBulkPermissionsRequest{Consistency: full}
	for _, q := range questions {
		req.Items = append(req.Items, &v1.CheckBulkPermissionsRequestItem{
			Resource: spiceDBObject(q.Resource), Permission: relationOf(q.Action), Subject: spiceDBSubject(q.Subject),
		})
	}
	return func(ctx context.Context) ([]bool, error) {
		res, err := s.client.CheckBulkPermissions(ctx, req)
		if err != nil {
			return nil, err
		}
		if len(res.Pairs) != len(allowed) {
			return nil, fmt.Errorf("%d answers to %d checks", len(res.Pairs), len(allowed))
		}
		for i, pair := range res.Pairs {
			if pair.GetItem() == nil {
				return nil, fmt.Errorf("check %d: %v", i, pair.GetError())
			}
			allowed[i] = pair.GetItem().Permissionship == v1.CheckPermissionResponse_PERMISSIONSHIP_HAS_PERMISSION
		}
		return allowed, nil
	}
}

// relationOf is the relation that the workload's action stands for.
func relationOf(action string) string {
	if action == "view" {
		return "viewer"
	}
	return action
}

// warm asks for a while.
func warm(ctx context.Context, t bench.Target, w bench.Workload) error {
	draw := w.Questioner(9, 0)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		if _, err := t.Prepare([]bench.Question{draw.Next()})(ctx); err != nil {
			return err
		}
	}
	return nil
}
