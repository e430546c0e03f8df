package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
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
	types  []schema.Type   // so far
	direct map[string]bool // type#relation: tuples of it are kept in a relation of their own
}

func dialSpiceDB(address, key string) (*spiceDB, error) {
	client, err := authzed.NewClient(address,
		grpcutil.WithInsecureBearerToken(key), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &spiceDB{client: client, direct: map[string]bool{}}, nil
}

func (s *spiceDB) Name() string    { return "SpiceDB" }
func (s *spiceDB) WriteLimit() int { return 5000 }

// Define translates the types. A relation with both tuples and rewrites becomes a permission,
// and its tuples are in another relation beside it.
func (s *spiceDB) Define(ctx context.Context, types []schema.Type) error {
	var b strings.Builder
	b.WriteString("definition user {}\ndefinition group {\n\trelation member: user | group#member\n}\n")
	s.types = together(s.types, types)
	for _, t := range s.types {
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
			if len(r.Rewrites) == 0 || hasThis(r.Rewrites) {
				fmt.Fprintf(&b, "\trelation %s: %s\n", stored, strings.Join(subjects, " | "))
				s.direct[t.Name+"#"+r.Name] = stored != r.Name
			}
			if len(r.Rewrites) > 0 {
				fmt.Fprintf(&b, "\tpermission %s = %s\n", r.Name, spiceDBRewrites(r.Name, r.Rewrites, " + "))
			}
		}
		b.WriteString("}\n")
	}
	_, err := s.client.WriteSchema(ctx, &v1.WriteSchemaRequest{Schema: b.String()})
	return err
}

func spiceDBRewrites(relation string, rewrites []schema.Rewrite, operator string) string {
	parts := make([]string, len(rewrites))
	for i, r := range rewrites {
		switch r.Kind {
		case schema.This:
			parts[i] = "direct_" + relation
		case schema.Computed:
			parts[i] = r.Relation
		case schema.TupleToUserset:
			parts[i] = r.Tupleset + "->" + r.Computed
		case schema.Union:
			parts[i] = "(" + spiceDBRewrites(relation, r.Children, " + ") + ")"
		case schema.Intersection:
			parts[i] = "(" + spiceDBRewrites(relation, r.Children, " & ") + ")"
		case schema.Exclusion:
			parts[i] = "(" + spiceDBRewrites(relation, []schema.Rewrite{*r.Base, *r.Subtract}, " - ") + ")"
		}
	}
	return strings.Join(parts, operator)
}

func spiceDBObject(o tuplestore.Object) *v1.ObjectReference {
	return &v1.ObjectReference{ObjectType: o.Type, ObjectId: o.ID}
}

func spiceDBSubject(s tuplestore.Subject) *v1.SubjectReference {
	return &v1.SubjectReference{Object: spiceDBObject(s.Object()), OptionalRelation: s.Relation}
}

// maxUpdates is SpiceDB's default limit of the updates of a write.
const maxUpdates = 1000

// Write writes as many tuples as a write may have as an application would, and more as a bulk import.
func (s *spiceDB) Write(ctx context.Context, tuples []tuplestore.Tuple) error {
	batch := make([]*v1.Relationship, len(tuples))
	for i, t := range tuples {
		relation := t.Relation
		if s.direct[t.Object.Type+"#"+relation] {
			relation = "direct_" + relation
		}
		batch[i] = &v1.Relationship{Resource: spiceDBObject(t.Object), Relation: relation, Subject: spiceDBSubject(t.Subject)}
	}
	if len(batch) <= maxUpdates {
		updates := make([]*v1.RelationshipUpdate, len(batch))
		for i, r := range batch {
			updates[i] = &v1.RelationshipUpdate{Operation: v1.RelationshipUpdate_OPERATION_CREATE, Relationship: r}
		}
		_, err := s.client.WriteRelationships(ctx, &v1.WriteRelationshipsRequest{Updates: updates})
		return err
	}
	stream, err := s.client.ImportBulkRelationships(ctx)
	if err != nil {
		return err
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

// List implements [bench.Lister].
func (s *spiceDB) List(ctx context.Context, subject tuplestore.Subject, typ, relation string) (iter.Seq[string], error) {
	stream, err := s.client.LookupResources(ctx, &v1.LookupResourcesRequest{
		Consistency:        &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}},
		ResourceObjectType: typ, Permission: relation, Subject: spiceDBSubject(subject),
	})
	if err != nil {
		return nil, err
	}
	var ids []string
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return slices.Values(ids), nil
		}
		if err != nil {
			return nil, err
		}
		if res.Permissionship == v1.LookupPermissionship_LOOKUP_PERMISSIONSHIP_HAS_PERMISSION {
			ids = append(ids, res.ResourceObjectId)
		}
	}
}

// together returns types and those that are not among them yet.
func together(types, more []schema.Type) []schema.Type {
	for _, t := range more {
		if !slices.ContainsFunc(types, func(had schema.Type) bool { return had.Name == t.Name }) {
			types = append(types, t)
		}
	}
	return types
}

// hasThis reports whether the rewrites include tuples.
func hasThis(rewrites []schema.Rewrite) bool {
	return slices.ContainsFunc(rewrites, func(r schema.Rewrite) bool {
		return r.Kind == schema.This || hasThis(r.Children) ||
			r.Base != nil && hasThis([]schema.Rewrite{*r.Base, *r.Subtract})
	})
}

// relationOf returns the relation of the workload's action.
func relationOf(action string) string {
	if action == "view" {
		return "viewer"
	}
	return action
}

// warm sends questions for a while.
func warm(ctx context.Context, t bench.Target, w bench.Workload) error {
	draw := w.Questioner(9, 0)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		if _, err := t.Prepare([]bench.Question{draw.Next()})(ctx); err != nil {
			return err
		}
	}
	return nil
}
